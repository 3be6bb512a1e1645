# frozen_string_literal: true

require_relative "recording_builder"

# A small recording of system calls, the same each time.
module SyscallsRecording
  MAIN = ["<main>", "/app/shop.rb", 1, 3].freeze
  LOAD = ["Shop.load", "/app/shop.rb", 7, 9].freeze

  def self.bytes(compress: false, **head)
    RecordingBuilder.build(compress: compress, mode: "none", collectors: ["syscalls"], **head) do |segment|
      segment.thread 1, "main"
      8.times { |at| segment.syscall "newfstatat", path: "/app/lib#{at}/shop.rb", at: 1000 + at * 10, ns: 5, errno: 2, flags: 0, stack: [MAIN, LOAD], cwd: "/app" }
      segment.syscall "openat", path: "/app/shop.rb", at: 2000, ns: 7, result: 5, flags: 0o2000000, stack: [MAIN], cwd: "/app"
      segment.syscall "close", path: "/app/shop.rb", at: 2100, ns: 2, stack: [MAIN], cwd: "/app"
      segment.syscall "rename", path: "/app/a", path2: "/app/b\xFF", at: 2200, ns: 3, thread: 0
      segment.syscall_totals({ "newfstatat" => [8, 8, 40], "openat" => [1, 0, 7], "close" => [1, 0, 2], "rename" => [1, 0, 3] })
    end
  end
end
