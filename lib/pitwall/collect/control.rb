# frozen_string_literal: true

module Pitwall
  module Collect
    # The endpoint that starts, stops and rotates continuous recording: what it answers, and a small listener that asks it. Only for
    # this machine, and only with the token.
    # @api private
    class Control
      # What may be asked, and how: what changes something isn't done by a link.
      ACTIONS = { "status" => "GET", "start" => "POST", "stop" => "POST", "rotate" => "POST" }.freeze
      LOOPBACK = /\A(?:localhost|127(?:\.\d{1,3}){3}|\[::1\]|::1)\z/i
      TOKEN_FILE = "token"
      LEAST_TOKEN = 16
      OFF = "Pitwall.continuous is not on in this process"
      private_constant :ACTIONS, :LOOPBACK, :TOKEN_FILE, :LEAST_TOKEN, :OFF

      # The token of a folder of recordings: made when there is none, readable by its owner only.
      # @raise [UsageError]
      #: (String) -> String
      def self.token(dir)
        path = File.join(dir, TOKEN_FILE)
        make_token(path) unless File.exist?(path)
        stat = File.stat(path)
        raise UsageError, "#{path} is readable by others: chmod 600 #{path}" unless (stat.mode & 0o077).zero?

        checked(File.read(path).strip, "#{path}: the token is too short: remove the file, and one is made")
      rescue SystemCallError => error
        raise UsageError, "#{path}: #{SystemCallError.new(error.errno).message}: no token, no endpoint"
      end

      # Under another name first: a process that asks at the same time must not read half a token.
      def self.make_token(path)
        new = "#{path}.#{Process.pid}-#{Random.urandom(4).unpack1("H*")}"
        File.open(new, File::WRONLY | File::CREAT | File::EXCL, 0o600) { |file| file.syswrite("#{Random.urandom(32).unpack1("H*")}\n") }
        File.link(new, path)
      rescue Errno::EEXIST
        nil # another process was first
      ensure
        File.unlink(new) if new && File.exist?(new)
      end

      def self.checked(token, complaint)
        raise UsageError, complaint unless token.bytesize >= LEAST_TOKEN

        token
      end
      private_class_method :checked, :make_token

      # @param token [String, nil] nil: nothing is recorded, and nobody can be told from anybody
      #: (String?) -> void
      def initialize(token)
        @token = token
      end

      # @param forwarded [Boolean] whether a proxy handed it on
      # @return [Array(Integer, Hash, String)] status, headers, body (JSON); whatever has become of the folder
      #: (method: String, action: String, host: String?, peer: String?, authorization: String?, ?forwarded: bool) -> [Integer, Hash[String, String], String]
      def answer(method:, action:, host:, peer:, authorization:, forwarded: false)
        # A page in a browser on this machine can name any host that leads here, and would send that name.
        return refuse(403, "only for this machine: ask for http://127.0.0.1") unless local?(host) && peer.to_s.delete_prefix("::ffff:").match?(LOOPBACK) && !forwarded
        return refuse(503, OFF) unless @token
        return refuse(401, "the token is missing or wrong: send Authorization: Bearer TOKEN") unless authorized?(authorization)

        expected = ACTIONS[action] or return refuse(404, "unknown: #{ACTIONS.keys.join(", ")} are there")
        return refuse(405, "#{action} takes #{expected}", "allow" => expected) unless method == expected
        return refuse(503, OFF) unless Continuous.dir

        Continuous.ask(action.to_sym) unless action == "status"
        reply(200, Continuous.status)
      rescue SystemCallError => error
        refuse(503, "#{Continuous.dir}: #{SystemCallError.new(error.errno).message}: nothing can be asked there until it is mended")
      end

      private

      def local?(host) = host.to_s.sub(/:\d+\z/, "").match?(LOOPBACK)

      # In a time that says nothing of how much of it was right.
      def authorized?(header)
        given = header.to_s[/\ABearer +(\S+)\s*\z/i, 1].to_s
        return false unless given.bytesize == @token.bytesize

        given.bytes.zip(@token.bytes).inject(0) { |difference, (a, b)| difference | (a ^ b) }.zero?
      end

      def refuse(status, message, headers = {}) = reply(status, { error: message }, headers)

      def reply(status, object, headers = {})
        body = "#{JSON.dump(object)}\n"
        [status, { "content-type" => "application/json", "content-length" => body.bytesize.to_s, "cache-control" => "no-store", "x-content-type-options" => "nosniff" }.merge(headers), body]
      end

      # Answers on a port of the loopback interface, one connection at a time.
      class Listener
        # Bytes of a request's head, and seconds for it.
        HEAD = 8192
        PATIENCE_S = 5
        REASONS = { 200 => "OK", 400 => "Bad Request", 401 => "Unauthorized", 403 => "Forbidden", 404 => "Not Found", 405 => "Method Not Allowed", 503 => "Service Unavailable" }.freeze
        private_constant :HEAD, :PATIENCE_S, :REASONS

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
          raise UsageError, "port #{port} of 127.0.0.1: #{SystemCallError.new(error.errno).message}: choose another, or 0"
        end

        # In a forked child the port is the parent's.
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
              nil # the peer has gone
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

          fields = fields.to_h { |field| field.split(":", 2).map(&:strip).then { |name, value| [name.to_s.downcase, value.to_s] } }
          respond(socket, *@control.answer(method: method, action: target.sub(/\?.*/, "").delete_prefix("/"), host: fields["host"], peer: socket.remote_address.ip_address,
                                           authorization: fields["authorization"], forwarded: fields.key?("x-forwarded-for") || fields.key?("forwarded")))
        end

        def read_head(socket)
          head = +""
          deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + PATIENCE_S
          until head.match?(/\r?\n\r?\n/)
            left = deadline - Process.clock_gettime(Process::CLOCK_MONOTONIC)
            return if left <= 0 || head.bytesize > HEAD || !socket.wait_readable(left)

            head << socket.readpartial(HEAD)
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
