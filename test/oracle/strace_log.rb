# frozen_string_literal: true

# What strace saw of the threads that were armed for syscall user dispatch, while they were: the slow, obvious second opinion.
# Written by `strace -f -qq -e trace=prctl,…`.
class StraceLog
  # tid, name, result (Integer, or "E2" for an error), paths as they were given
  Call = Struct.new(:tid, :name, :result, :paths)
  ERRORS = Errno.constants.map { |name| [name.to_s, Errno.const_get(name)] }.select { |_, error| error.is_a?(Class) && error < SystemCallError }.to_h { |name, error| [name, error::Errno] }

  attr_reader :calls

  def initialize(path)
    @calls = []
    @armed = {}
    @unfinished = {}
    @last = {}
    File.foreach(path) { |line| read(line.scrub) }
  end

  private

  def read(line)
    case line
    when /\A(\d+) +(.*) <unfinished \.\.\.>$/ then @unfinished[$1] = $2
    when /\A(\d+) +<\.\.\. \w+ resumed>(.*)$/ then call("#{$1} #{@unfinished.delete($1)}#{$2}")
    else call(line)
    end
  end

  def call(line)
    match = line.match(/\A(\d+) +(\w+)\((.*)\) += (0x\h+|-?\d+|\?)(?: (E[A-Z0-9]+))?/)
    return unless match

    tid, name, arguments, result, error = match.captures
    return @armed[tid.to_i] = arguments.include?("DISPATCH_ON") if name == "prctl" && arguments.include?("USER_DISPATCH")
    return if !@armed[tid.to_i] || name == "prctl" || name.start_with?("execve")

    paths = arguments.scan(/"((?:[^"\\]|\\.)*)"/).flatten.map { |text| text.gsub(/\\(.)/, '\1') }
    return if pitwalls?(tid.to_i, name, paths)

    value = error ? "E#{ERRORS.fetch(error)}" : Integer(result)
    @calls << @last[tid.to_i] = Call.new(tid.to_i, name, value, paths)
  end

  # After a change of working directory it asks what that is, and where a path starts from a descriptor, what folder that is.
  def pitwalls?(tid, name, paths)
    last = @last[tid]
    (name == "getcwd" && last && %w[chdir fchdir].include?(last.name) && last.result == 0) ||
      (name == "readlink" && paths.first.to_s.start_with?("/proc/self/fd/"))
  end
end
