# frozen_string_literal: true

require_relative "../../pitwall"

module Pitwall
  # Middleware for Rack applications (Rails, Sinatra, Roda, Hanami…). It loads pitwall-core only.
  module Rack
    # Labels each request with its route, and marks its beginning and end ({Pitwall.request}). While nothing is
    # recorded, it only calls the application.
    #
    #   use Pitwall::Rack::Requests                                  # config.ru
    #   config.middleware.insert 0, Pitwall::Rack::Requests          # Rails
    #
    # The route is `orders#show` in Rails, and the pattern (`GET /orders/:id`) in Sinatra and Grape. Elsewhere it is the
    # method and the path, in which `:id` replaces every part that looks like an id, a slug or a file. Query strings,
    # parameters and hosts are never read. The route of a path is learned from its first request; that request has
    # "(unknown)" until it ends.
    class Requests
      # The most shapes whose routes are remembered.
      MAX_SHAPES = 2000
      # The most parts of a path that a shape has.
      DEPTH = 6
      # A part without digits and dashes counts as a name in the code.
      WORD = /\A[A-Za-z_]{1,24}(?:\.[a-z]{2,5})?\z/
      # A path of such parts only, which is its own shape.
      PLAIN = %r{\A(?:/[A-Za-z_]{1,24}(?:\.[a-z]{2,5})?){1,#{DEPTH}}\z}
      UNKNOWN = "(unknown)"
      METHODS = %w[GET POST PUT PATCH DELETE HEAD OPTIONS].freeze
      private_constant :MAX_SHAPES, :DEPTH, :WORD, :PLAIN, :UNKNOWN, :METHODS

      # If one of the two blocks raises, the request runs without its labels, and one line on standard
      # error says so once.
      # @param route [#call, nil] gives the route's name for an env, when the request ends; nil: the route as above
      # @param labels [#call, nil] gives more labels ({tenant: "acme"}) for an env, when the request begins
      def initialize(app, route: nil, labels: nil)
        @app = app
        @route = route
        @labels = labels
        @learned = {} # shape => labels
        @warned = {} # name of a block that raised => true
        @unknown = Collect::Labels.set(route: UNKNOWN)
        Requests.follow_rails
      end

      # A body that is streamed later is not part of the request.
      # @return the application's response
      #: (Hash[String, untyped]) -> untyped
      def call(env)
        return @app.call(env) unless Pitwall.recording?

        shape = Requests.shape(env)
        known = @learned[shape]
        labels = known || @unknown
        labels = with_own_labels(labels, env) if @labels
        Collect::Labels.with(labels, marked: true) do
          @app.call(env)
        ensure
          route = (@route ? call_block(:route, @route, env) : Requests.route(env)) || shape
          Pitwall.relabel(route: route) unless Pitwall.labels[:route] == route
          learn(shape, route) unless known && known.labels[:route] == route
        end
      end

      private

      # Adds the labels of the program's own block. A value that is no Hash adds nothing.
      def with_own_labels(labels, env)
        own = call_block(:labels, @labels, env) do |value|
          value.transform_values { |each| each&.to_s } if value.is_a?(Hash)
        end
        own ? labels.labels.merge(own) : labels
      end

      # @return the value of a block of the program; nil if it raises, because a request must not fail for its labels
      def call_block(name, block, env)
        value = block.call(env)
        block_given? ? yield(value) : value
      rescue StandardError => error
        warn_once(name, error)
      end

      # The line has no error message, which may be confidential.
      def warn_once(name, error)
        return if @warned[name]

        @warned[name] = true
        place = error.backtrace&.first
        $stderr.write("pitwall: #{name}: of Pitwall::Rack::Requests raised #{error.class} (#{place}): " \
                      "such requests go without\n")
        nil
      rescue SystemCallError, IOError
        nil # standard error is closed
      end

      def learn(shape, route)
        @learned[shape] = Collect::Labels.set(route: route) if @learned.size < MAX_SHAPES || @learned.key?(shape)
      end

      class << self
        # The method and the path without ids: "GET /orders/1234/items" → "GET /orders/:id/items".
        #: (Hash[String, untyped]) -> String
        def shape(env)
          method = env["REQUEST_METHOD"]
          method = "OTHER" unless METHODS.include?(method)
          script = env["SCRIPT_NAME"]
          path = env["PATH_INFO"]
          path = "#{script.to_s.b}#{path.to_s.b}" unless path && (script.nil? || script.empty?)
          path = path.b unless path.valid_encoding?
          return "#{method} #{path}" if PLAIN.match?(path)

          parts = path.split("/")
          parts.delete("")
          long = parts.size > DEPTH and parts = parts.first(DEPTH)
          parts.map! { |part| part.match?(WORD) ? part : ":id" }
          parts << "…" if long
          "#{method} /#{parts.join("/")}"
        end

        # The route that the framework has put into the env; nil if there is none.
        #: (Hash[String, untyped]) -> String?
        def route(env)
          rails = env["action_dispatch.request.path_parameters"]
          return "#{rails[:controller]}##{rails[:action]}" if rails.is_a?(Hash) && rails[:controller].is_a?(String)

          sinatra = env["sinatra.route"]
          return sinatra if sinatra.is_a?(String)

          grape = env["grape.routing_args"]
          info = grape[:route_info] if grape.is_a?(Hash)
          "#{info.request_method} #{info.origin}" if info.respond_to?(:origin) && info.respond_to?(:request_method)
        end

        # Rails sends a notification when a controller begins. The route is then known before the response.
        # @api private
        def follow_rails
          return if @following || !defined?(::ActiveSupport::Notifications)

          @following = true
          event = "start_processing.action_controller"
          ::ActiveSupport::Notifications.subscribe(event) do |_name, _start, _finish, _id, payload|
            params = payload[:params]
            route = "#{params["controller"]}##{params["action"]}" if params.respond_to?(:[])
            Pitwall.relabel(route: route) if route && Pitwall.labels.key?(:route) && Pitwall.labels[:route] != route
          end
        end
      end
    end

    # Starts, stops and rotates {Pitwall.continuous} by HTTP: `GET /pitwall/status`, `POST /pitwall/start`, `stop`,
    # `rotate`. It serves requests from this machine that have the token in the folder's file `token`. A request applies
    # to all processes of the folder.
    #
    #   use Pitwall::Rack::Control
    #   curl -H "Authorization: Bearer $(cat DIR/token)" -X POST http://127.0.0.1:9292/pitwall/rotate
    class Control
      # @param path [String] the URL path below which it serves requests
      # @param dir [String, nil] the folder with the token; nil: the folder of Pitwall.continuous
      # @raise [UsageError] there is no token
      def initialize(app, path: "/pitwall", dir: nil)
        @app = app
        @path = "#{path.chomp("/")}/"
        @control = Collect::Control.new(Collect::Control.token(dir)) if dir
      end

      # @return [Array(Integer, Hash, Array<String>)]
      #: (Hash[String, untyped]) -> untyped
      def call(env)
        path = env["PATH_INFO"].to_s
        return @app.call(env) unless path.start_with?(@path)

        status, headers, body = control(env, path.delete_prefix(@path))
        [status, headers, [body]]
      end

      private

      def control(env, action)
        dir = Collect::Continuous.dir
        @control ||= Collect::Control.new(Collect::Control.token(dir)) if dir
        control = @control || Collect::Control.new(nil)
        control.answer(method: env["REQUEST_METHOD"], action: action, host: env["HTTP_HOST"], peer: env["REMOTE_ADDR"],
                       authorization: env["HTTP_AUTHORIZATION"],
                       forwarded: env.key?("HTTP_X_FORWARDED_FOR") || env.key?("HTTP_FORWARDED"))
      rescue UsageError => error
        body = "#{error.message}\n"
        [503, { "content-type" => "text/plain", "content-length" => body.bytesize.to_s }, body]
      end
    end
  end
end
