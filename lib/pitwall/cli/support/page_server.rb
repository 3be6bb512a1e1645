# frozen_string_literal: true

require "securerandom"
require "socket"
require "pitwall/errors"
require "pitwall/show"

module Pitwall
  module CLI
    # Serves one page on the loopback device to whoever knows its address, whose path is a random token.
    #
    # Another user of the machine can connect, and a foreign web page can make the browser ask: neither knows the token,
    # and a request under another host name (DNS rebinding) is refused.
    class PageServer
      HOST = "127.0.0.1"
      # Of a request's head: bytes, and seconds it may take; connections at once.
      LONGEST = 16 * 1024
      PATIENCE = 5
      AT_ONCE = 16
      REASONS = { 200 => "OK", 400 => "Bad Request", 404 => "Not Found", 405 => "Method Not Allowed",
                  421 => "Misdirected Request" }.freeze
      # Of every answer. Each is the only one on its connection.
      PROTECTION = { "Cache-Control" => "no-store", "Referrer-Policy" => "no-referrer",
                     "X-Content-Type-Options" => "nosniff", "Cross-Origin-Opener-Policy" => "same-origin",
                     "Cross-Origin-Resource-Policy" => "same-origin", "Connection" => "close" }.freeze
      private_constant :LONGEST, :PATIENCE, :AT_ONCE, :REASONS, :PROTECTION

      # @param port [Integer] 0: any that is free
      # @raise [UsageError] when the port is taken
      #: (String, ?port: Integer) -> void
      def initialize(page, port: 0)
        @page = page.b
        @token = SecureRandom.urlsafe_base64(24)
        @server = TCPServer.new(HOST, port)
      rescue SystemCallError => error
        taken = "is taken: name another, or none" if error.is_a?(Errno::EADDRINUSE)
        raise UsageError, "--port #{port}: #{taken || SystemCallError.new(error.errno).message}"
      end

      #: () -> Integer
      def port = @server.addr[1]

      #: () -> String
      def address = "http://#{HOST}:#{port}/#{@token}/"

      # Answers until {#close}, or until what interrupts it.
      #: () -> void
      def run
        busy = SizedQueue.new(AT_ONCE)
        loop do
          busy << true
          Thread.new(@server.accept) do |client|
            serve(client)
          ensure
            client.close
            busy.pop
          end
        end
      rescue IOError, Errno::EBADF
        nil # closed
      end

      #: () -> void
      def close = @server.close

      private

      def serve(client)
        request = head(client) or return
        status, body = answer(request)
        write(client, status, body, only_head: request[0] == "HEAD")
      rescue SystemCallError, IOError
        nil # the browser has gone
      end

      # @return [Array(String, String, Hash), nil] method, path, headers by their lower-case name; nil for none
      def head(client)
        deadline = now + PATIENCE
        text = "".b
        until text.include?("\r\n\r\n")
          return if text.bytesize > LONGEST || !client.wait_readable([deadline - now, 0].max)

          text << client.readpartial(4096)
        end
        first, *rest = text[/\A.*?(?=\r\n\r\n)/m].split("\r\n")
        headers = rest.to_h { |line| line.split(":", 2).then { |name, value| [name.downcase, value.to_s.strip] } }
        [*first.to_s.split(" ", 3).first(2), headers]
      end

      def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

      def answer(request)
        method, path, headers = request
        return [400, "not a request"] unless headers
        unless ["#{HOST}:#{port}", "localhost:#{port}"].include?(headers["host"])
          return [421, "this is not the host you are looking for"]
        end
        return [405, "GET only"] unless %w[GET HEAD].include?(method)

        known?(path) ? [200, @page] : [404, "nothing here: the address that pitwall printed ends in a token"]
      end

      # In a time that doesn't tell how much of it is right.
      def known?(path)
        wanted = "/#{@token}/"
        path.bytesize == wanted.bytesize && path.bytes.zip(wanted.bytes).sum { |a, b| a ^ b }.zero?
      end

      def write(client, status, body, only_head:)
        type = status == 200 ? "text/html" : "text/plain"
        headers = { "Content-Type" => "#{type}; charset=utf-8", "Content-Length" => body.bytesize, **PROTECTION,
                    "Content-Security-Policy" => "#{Show::Page.policy}; frame-ancestors 'none'" }
        lines = ["HTTP/1.1 #{status} #{REASONS.fetch(status)}", *headers.map { |name, value| "#{name}: #{value}" }]
        head = "#{lines.join("\r\n")}\r\n\r\n"
        send_all(client, only_head ? head : head.b << body)
      end

      # Who takes nothing for so long gets no more: nobody shall keep the others waiting.
      def send_all(client, bytes)
        sent = 0
        while sent < bytes.bytesize
          part = client.write_nonblock(bytes.byteslice(sent, 1 << 16), exception: false)
          next sent += part if part.is_a?(Integer)

          return unless client.wait_writable(PATIENCE)
        end
      end
    end
    private_constant :PageServer
  end
end
