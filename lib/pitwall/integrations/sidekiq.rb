# frozen_string_literal: true

require_relative "../../pitwall"

module Pitwall
  # For Sidekiq. Loads nothing but pitwall-core.
  module Sidekiq
    # Labels each job with its class and queue and marks its beginning and end ({Pitwall.request}); arguments are never looked at. While nothing
    # is recorded it does nothing.
    #
    #   Sidekiq.configure_server { |config| config.server_middleware { |chain| chain.add Pitwall::Sidekiq::Jobs } }
    class Jobs
      # @param _worker [Object] the job's instance
      # @param job [Hash] as Sidekiq stores it
      #: (untyped, Hash[String, untyped], String) { () -> untyped } -> untyped
      def call(_worker, job, queue, &block)
        # ActiveJob's wrapper says what it wraps.
        Pitwall.request(job: job["wrapped"] || job["class"], queue: queue, &block)
      end
    end
  end
end
