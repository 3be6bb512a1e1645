# frozen_string_literal: true

require_relative "../../pitwall"

module Pitwall
  # Middleware for Sidekiq. It loads pitwall-core only.
  module Sidekiq
    # Labels each job with its class and queue, and marks its beginning and end ({Pitwall.request}). It never reads a
    # job's arguments. While nothing is recorded it does nothing.
    #
    #   Sidekiq.configure_server { |config| config.server_middleware { |chain| chain.add Pitwall::Sidekiq::Jobs } }
    class Jobs
      # @param _worker [Object] the job's instance
      # @param job [Hash] the job as Sidekiq stores it
      #: (untyped, Hash[String, untyped], String) { () -> untyped } -> untyped
      def call(_worker, job, queue, &block)
        # For a job of ActiveJob, "class" is the wrapper's, and "wrapped" the job's own.
        Pitwall.request(job: job["wrapped"] || job["class"], queue: queue, &block)
      end
    end
  end
end
