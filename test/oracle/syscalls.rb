# frozen_string_literal: true

# The study's seven passes as doc/syscalls.md states them, slow and obvious: each pass reads the whole of what the one before it
# left, as pairs of [call, path], and looks at every place anew.
module SyscallOracle
  LOAD = %w[open fstat64 close open fstat64 fgetxattr fgetxattr close].freeze
  YAML = %w[open fstat64 fgetxattr fgetxattr close].freeze
  NOT_GEMS = %w[config csv fonts images javascripts stylesheets svg].freeze
  MOST_SINGLE = 8

  module_function

  # @param lines [Array<String>] "call\tpath"
  # @return [Array<String>] the collapsed log
  def collapse(lines)
    log = lines.map { |line| line.split("\t", 2) }
    log = sequence(log, LOAD, "%LOAD")
    log = sequence(log, YAML, "%YAML")
    log = walks(log)
    log = scans(log, "open", "%SCAN") { |previous, path| path.end_with?(File.basename(previous)) && path != previous }
    log = gems(log)
    log = scans(log, "stat64", "%ASDS", counted: true) { |previous, path| File.basename(path) == File.basename(previous) && path != previous }
    log = sequence(log, %w[stat64 lstat64], "%STLS")
    log.map { |line| line.join("\t") }
  end

  def sequence(log, calls, marker)
    out = []
    at = 0
    while at < log.size
      here = log[at, calls.size]
      if here.map(&:first) == calls && here.map(&:last).uniq.size == 1
        out << [marker, log[at][1]]
        at += calls.size
      else
        out << log[at]
        at += 1
      end
    end
    out
  end

  def walks(log)
    out = []
    at = 0
    while at < log.size
      if log[at][0] == "lstat64" && log[at][1].match?(%r{\A/[^/]+\z})
        last = at
        last += 1 while log[last + 1] && log[last + 1][0] == "lstat64" && log[last + 1][1].match?(%r{\A#{Regexp.escape(log[last][1])}/[^/]+\z})
        out << ["%RRPI", log[last][1]]
        at = last + 1
      else
        out << log[at]
        at += 1
      end
    end
    out
  end

  def scans(log, call, marker, counted: false)
    out = []
    at = 0
    while at < log.size
      last = at
      last += 1 while log[at][0] == call && log[last + 1] && log[last + 1][0] == call && yield(log[last][1], log[last + 1][1])
      if last > at
        out << [marker, File.basename(log[last][1]), *((last - at + 1).to_s if counted)]
      else
        out << log[at]
      end
      at = last + 1
    end
    out
  end

  def gems(log)
    log.chunk_while { |a, b| stat?(a) == stat?(b) }.flat_map { |run| stat?(run[0]) ? gems_of(run) : run }
  end

  def stat?(line) = %w[stat64 lstat64].include?(line[0])

  # A run of nothing but stats, cut before each name without a slash that follows one with a slash.
  def gems_of(run)
    chunks = run.slice_when { |a, b| a[1].include?("/") && !b[1].include?("/") }
    chunks.flat_map do |chunk|
      gem = !chunk[0][1].include?("/") && !NOT_GEMS.include?(chunk[0][1])
      gem && chunk.size > MOST_SINGLE ? [["%SGEM", "(some-gem)", chunk.size.to_s]] : chunk
    end
  end
end
