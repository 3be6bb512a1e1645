# frozen_string_literal: true

module Benchmarks
  # File-system calls of a process and of those that it starts, counted by strace.
  module StraceCounts
    TRACED = "trace=%file,%desc"
    # These take descriptors, too, but map memory or wait.
    OTHERS = /\A(?:mmap2?|poll|ppoll|select|pselect6|epoll_\w+|eventfd2?)\z/
    # % time, seconds, µs a call, calls, errors (may be absent), name
    ROW = /^\s*[\d.]+\s+[\d.]+\s+\d+\s+(?<calls>\d+)\s+(?:\d+\s+)?(?<name>\w+)$/
    private_constant :TRACED, :OTHERS, :ROW

    module_function

    #: () -> bool
    def there? = system("command -v strace > /dev/null") == true

    # Yields the words of a command that runs another one. @return [Integer] calls
    #: (String) { (Array[String]) -> void } -> Integer
    def count(folder)
      log = File.join(folder, "strace")
      yield ["strace", "-f", "-c", "-e", TRACED, "-o", log]
      sum(File.read(log))
    end

    # @param summary [String] what `strace -c` wrote
    #: (String) -> Integer
    def sum(summary)
      rows = summary.lines(chomp: true).filter_map { |line| ROW.match(line) }
      rows.reject { |row| row[:name] == "total" || OTHERS.match?(row[:name]) }.sum { |row| Integer(row[:calls]) }
    end
  end
end
