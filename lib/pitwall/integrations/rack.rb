# frozen_string_literal: true

require_relative "../../pitwall"

module Pitwall
  # Middleware for Rack applications (Rails, Sinatra, Roda, Hanami…). Loads nothing but pitwall-core.
  module Rack
    # Labels each request with its route and marks its beginning and end ({Pitwall.request}); while nothing is recorded, hands the
    # request on and does nothing else.
    #
    #   use Pitwall::Rack::Requests                                  # config.ru
    #   config.middleware.insert 0, Pitwall::Rack::Requests          # Rails
    #
    # The route is `orders#show` in Rails, the pattern (`GET /orders/:id`) in Sinatra and Grape, elsewhere the method and the path with all
    # that looks like an id, a slug or a file left out. Query strings, parameters and hosts are never looked at. What a path leads to is known
    # once the first such request has been there; until then it is "(unknown)".
    class Requests
      # Paths of which it is remembered what they lead to.
      MOST_SHAPES = 2000
      # Parts of a path that are kept; words without digits and dashes are taken for names in the code.
      DEPTH = 6
      WORD = /\A[A-Za-z_]{1,24}(?:\.[a-z]{2,5})?\z/
      # A path of nothing else, which need not be cut up.
      PLAIN = %r{\A(?:/[A-Za-z_]{1,24}(?:\.[a-z]{2,5})?){1,#{DEPTH}}\z}
      UNKNOWN = "(unknown)"
      METHODS = %w[GET POST PUT PATCH DELETE HEAD OPTIONS].freeze
      private_constant :MOST_SHAPES, :DEPTH, :WORD, :PLAIN, :UNKNOWN, :METHODS

      # @param route [#call, nil] env → the route's name, asked when the request is done; nil: found out as described
      # @param labels [#call, nil] env → more labels ({tenant: "acme"}), asked when it begins. Where one of the two raises, the request goes on
      #   without, and one line on standard error says so, once
      def initialize(app, route: nil, labels: nil)
        @app = app
        @route = route
        @labels = labels
        @learned = {} # shape => labels
        @told = {} # which blocks raised
        @unknown = Collect::Labels.set(route: UNKNOWN)
        Requests.follow_rails
      end

      # @return what the application answers; what it sends later (a streamed body) is no longer in the request
      #: (Hash[String, untyped]) -> untyped
      def call(env)
        return @app.call(env) unless Pitwall.recording?

        shape = Requests.shape(env)
        known = @learned[shape]
        under = known || @unknown
        under = more(under, env) if @labels
        Collect::Labels.with(under, marked: true) do
          @app.call(env)
        ensure
          route = (@route ? asked(:route, @route, env) : Requests.route(env)) || shape
          Pitwall.relabel(route: route) unless Pitwall.labels[:route] == route
          learn(shape, route) unless known && known.labels[:route] == route
        end
      end

      private

      # With what the program's own block adds; what is no Hash adds nothing.
      def more(under, env)
        given = asked(:labels, @labels, env) { |labels| labels.transform_values { |value| value&.to_s } if labels.is_a?(Hash) }
        given ? under.labels.merge(given) : under
      end

      # What a block of the program answers; nil where it raises: a request must not fail for its labels.
      def asked(name, block, env)
        answer = block.call(env)
        block_given? ? yield(answer) : answer
      rescue StandardError => error
        tell(name, error)
      end

      # Once, without the message, which may hold what is nobody's business.
      def tell(name, error)
        return if @told[name]

        @told[name] = true
        $stderr.write("pitwall: #{name}: of Pitwall::Rack::Requests raised #{error.class} (#{error.backtrace&.first}): such requests go without\n")
        nil
      rescue SystemCallError, IOError
        nil # nobody listens
      end

      def learn(shape, route)
        @learned[shape] = Collect::Labels.set(route: route) if @learned.size < MOST_SHAPES || @learned.key?(shape)
      end

      class << self
        # "GET /orders/1234/items" → "GET /orders/:id/items"
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

        # What the framework says that it was; nil where it says nothing.
        #: (Hash[String, untyped]) -> String?
        def route(env)
          rails = env["action_dispatch.request.path_parameters"]
          return "#{rails[:controller]}##{rails[:action]}" if rails.is_a?(Hash) && rails[:controller].is_a?(String)

          sinatra = env["sinatra.route"]
          return sinatra if sinatra.is_a?(String)

          grape = env["grape.routing_args"]
          origin = grape[:route_info] if grape.is_a?(Hash)
          "#{origin.request_method} #{origin.origin}" if origin.respond_to?(:origin) && origin.respond_to?(:request_method)
        end

        # Rails tells when a controller begins: earlier than its answer.
        # @api private
        def follow_rails
          return if @follows || !defined?(::ActiveSupport::Notifications)

          @follows = true
          ::ActiveSupport::Notifications.subscribe("start_processing.action_controller") do |_name, _start, _finish, _id, payload|
            params = payload[:params]
            route = "#{params["controller"]}##{params["action"]}" if params.respond_to?(:[])
            Pitwall.relabel(route: route) if route && Pitwall.labels.key?(:route) && Pitwall.labels[:route] != route
          end
        end
      end
    end

    # Starts, stops and rotates {Pitwall.continuous} by HTTP, from this machine only and with the token that stands in the folder's
    # file `token`: `GET /pitwall/status`, `POST /pitwall/start`, `stop`, `rotate`. All processes of the folder obey.
    #
    #   use Pitwall::Rack::Control
    #   curl -H "Authorization: Bearer $(cat DIR/token)" -X POST http://127.0.0.1:9292/pitwall/rotate
    class Control
      # @param path [String] below which it answers
      # @param dir [String, nil] the folder whose token counts; nil: the one that Pitwall.continuous was given
      # @raise [UsageError] no token
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
        @control ||= Collect::Control.new(Collect::Control.token(Collect::Continuous.dir)) if Collect::Continuous.dir
        control = @control || Collect::Control.new(nil)
        control.answer(method: env["REQUEST_METHOD"], action: action, host: env["HTTP_HOST"], peer: env["REMOTE_ADDR"], authorization: env["HTTP_AUTHORIZATION"],
                       forwarded: env.key?("HTTP_X_FORWARDED_FOR") || env.key?("HTTP_FORWARDED"))
      rescue UsageError => error
        [503, { "content-type" => "text/plain", "content-length" => (error.message.bytesize + 1).to_s }, "#{error.message}\n"]
      end
    end
  end
end
