# frozen_string_literal: true

module Pitwall
  module Collect
    # The HTTP endpoint that starts, stops and rotates continuous recording: its answers, and a small server. It serves
    # requests from this machine that have the token.
    # @api private
    class Control
      # Allowed requests. A request that changes something needs POST, so that a link in a page cannot do it.
      ACTIONS = { "status" => "GET", "start" => "POST", "stop" => "POST", "rotate" => "POST" }.freeze
      LOOPBACK = /\A(?:localhost|127(?:\.\d{1,3}){3}|\[::1\]|::1)\z/i
      TOKEN_FILE = "token"
      MIN_TOKEN_BYTES = 16
      OFF = "Pitwall.continuous is not on in this process"
      private_constant :ACTIONS, :LOOPBACK, :TOKEN_FILE, :MIN_TOKEN_BYTES, :OFF

      # The token of a folder of recordings. A new token is readable by its owner only.
      # @raise [UsageError]
      #: (String) -> String
      def self.token(dir)
        path = File.join(dir, TOKEN_FILE)
        make_token(path) unless File.exist?(path)
        stat = File.stat(path)
        raise UsageError, "#{path} is readable by others: chmod 600 #{path}" unless (stat.mode & 0o077).zero?

        checked(File.read(path).strip, "#{path}: the token is too short: remove the file, and a new one is made")
      rescue SystemCallError => error
        raise UsageError, "#{path}: #{SystemCallError.new(error.errno).message}: no token, no endpoint"
      end

      # Writes the token to a file of another name first, so that another process never reads half a token.
      def self.make_token(path)
        new = "#{path}.#{Process.pid}-#{Random.urandom(4).unpack1("H*")}"
        token = Random.urandom(32).unpack1("H*")
        File.open(new, File::WRONLY | File::CREAT | File::EXCL, 0o600) { |file| file.syswrite("#{token}\n") }
        File.link(new, path)
      rescue Errno::EEXIST
        nil # another process has made the token
      ensure
        File.unlink(new) if new && File.exist?(new)
      end

      def self.checked(token, complaint)
        raise UsageError, complaint unless token.bytesize >= MIN_TOKEN_BYTES

        token
      end
      private_class_method :checked, :make_token

      # @param token [String, nil] nil: continuous recording is off, so there is no token to check
      #: (String?) -> void
      def initialize(token)
        @token = token
      end

      # @param action [String] "status", "start", "stop" or "rotate"
      # @param host [String, nil] the request's Host field
      # @param peer [String, nil] the client's address
      # @param forwarded [Boolean] whether a proxy forwarded the request
      # @return [Array(Integer, Hash, String)] status, headers, body (JSON). Never raises for the state of the folder.
      #: (method: String, action: String, host: String?, peer: String?, authorization: String?, ?forwarded: bool)
      #:   -> [Integer, Hash[String, String], String]
      def answer(method:, action:, host:, peer:, authorization:, forwarded: false)
        # A page in a browser on this machine may use another host name that leads here. The browser
        # then sends that name.
        local = local_host?(host) && peer.to_s.delete_prefix("::ffff:").match?(LOOPBACK) && !forwarded
        return refuse(403, "only for this machine: ask for http://127.0.0.1") unless local
        return refuse(503, OFF) unless @token
        unless authorized?(authorization)
          return refuse(401, "the token is missing or wrong: send Authorization: Bearer TOKEN")
        end

        expected = ACTIONS[action] or return refuse(404, "unknown: #{ACTIONS.keys.join(", ")} are there")
        return refuse(405, "#{action} takes #{expected}", "allow" => expected) unless method == expected
        return refuse(503, OFF) unless Continuous.dir

        Continuous.request(action.to_sym) unless action == "status"
        reply(200, Continuous.status)
      rescue SystemCallError => error
        problem = SystemCallError.new(error.errno).message
        refuse(503, "#{Continuous.dir}: #{problem}: no request works until the folder is mended")
      end

      private

      def local_host?(host) = host.to_s.sub(/:\d+\z/, "").match?(LOOPBACK)

      # Compares in constant time, so that the time does not tell how many bytes were right.
      def authorized?(header)
        sent = header.to_s[/\ABearer +(\S+)\s*\z/i, 1].to_s
        return false unless sent.bytesize == @token.bytesize

        sent.bytes.zip(@token.bytes).inject(0) { |difference, (a, b)| difference | (a ^ b) }.zero?
      end

      def refuse(status, message, headers = {}) = reply(status, { error: message }, headers)

      def reply(status, object, headers = {})
        body = "#{JSON.dump(object)}\n"
        fields = { "content-type" => "application/json", "content-length" => body.bytesize.to_s,
                   "cache-control" => "no-store", "x-content-type-options" => "nosniff" }
        [status, fields.merge(headers), body]
      end

      # Serves a port of the loopback interface, one connection at a time.
      class Listener
        # The limit for the head of a request, and the time for reading it.
        MAX_HEAD_BYTES = 8192
        HEAD_TIMEOUT_S = 5
        REASONS = { 200 => "OK", 400 => "Bad Request", 401 => "Unauthorized", 403 => "Forbidden", 404 => "Not Found",
                    405 => "Method Not Allowed", 503 => "Service Unavailable" }.freeze
        private_constant :MAX_HEAD_BYTES, :HEAD_TIMEOUT_S, :REASONS

        # @return [Integer]
        attr_reader :port

        # @param port [Integer] 0: a free one
        # @raise [UsageError]
        #: (Control, Integer) -> void
        def initialize(control, port)
          require "socket"
          @control = control
          @server = TCPServer.new("127.0.0.1", port)
          @port = @server.local_address.ip_port
          @thread = Thread.new { serve }
        rescue SystemCallError => error
          problem = SystemCallError.new(error.errno).message
          raise UsageError, "port #{port} of 127.0.0.1: #{problem}: choose another, or 0"
        end

        # Called in a forked child: the port belongs to the parent.
        def close = @server.close

        def stop
          @thread.kill
          close
        end

        private

        def serve
          Thread.current.name = "pitwall control"
          Thread.current.report_on_exception = false
          until @server.closed?
            socket = @server.accept
            begin
              converse(socket)
            rescue SystemCallError, IOError, Pitwall::Error
              nil # the client has closed the connection
            ensure
              socket.close
            end
          end
        rescue IOError
          nil # closed
        end

        def converse(socket)
          head = read_head(socket)
          line, *fields = head.to_s.split(/\r?\n/)
          method, target, version = line.to_s.split
          return respond(socket, 400, {}, "") unless version.to_s.start_with?("HTTP/1") && target.start_with?("/")

          fields = fields.to_h do |field|
            name, value = field.split(":", 2).map(&:strip)
            [name.to_s.downcase, value.to_s]
          end
          forwarded = fields.key?("x-forwarded-for") || fields.key?("forwarded")
          respond(socket, *@control.answer(method: method, action: target.sub(/\?.*/, "").delete_prefix("/"),
                                           host: fields["host"], peer: socket.remote_address.ip_address,
                                           authorization: fields["authorization"], forwarded: forwarded))
        end

        def read_head(socket)
          head = +""
          deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + HEAD_TIMEOUT_S
          until head.match?(/\r?\n\r?\n/)
            left = deadline - Process.clock_gettime(Process::CLOCK_MONOTONIC)
            return if left <= 0 || head.bytesize > MAX_HEAD_BYTES || !socket.wait_readable(left)

            head << socket.readpartial(MAX_HEAD_BYTES)
          end
          head.force_encoding(Encoding::BINARY)
        end

        def respond(socket, status, headers, body)
          fields = headers.map { |name, value| "#{name}: #{value}\r\n" }.join
          socket.write("HTTP/1.1 #{status} #{REASONS.fetch(status)}\r\n#{fields}connection: close\r\n\r\n#{body}")
        end
      end
    end
  end
end
