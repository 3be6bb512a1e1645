# frozen_string_literal: true

# Sends requests to servers without a pause. Each line "PORT REQUESTS" of standard input sends so many requests to that
# port, over connections that stay open, one request at a time each. Prints the times of all requests, in ns, in one
# line.
#
#   ruby http_load.rb CONNECTIONS
require "socket"

$stdout.sync = true
now = -> { Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond) }
sockets = Hash.new do |all, port|
  all[port] = Array.new(Integer(ARGV[0])) do
    TCPSocket.new("127.0.0.1", port).tap do |socket|
      socket.setsockopt(Socket::IPPROTO_TCP, Socket::TCP_NODELAY, 1)
    end
  end
end

while (line = $stdin.gets)
  port, left = line.split.map { |word| Integer(word) }
  asked = {}
  took = []
  ask = lambda do |socket|
    asked[socket] = now.call
    socket.write("GET /orders/1 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
    left -= 1
  end
  sockets[port].first(left).each(&ask)
  until asked.empty?
    IO.select(asked.keys).first.each do |socket|
      answer = socket.readpartial(65_536)
      answer << socket.readpartial(65_536) until answer.end_with?("\r\n\r\nok")
      took << now.call - asked.delete(socket)
      ask.call(socket) if left.positive?
    end
  end
  puts took.join(" ")
end
