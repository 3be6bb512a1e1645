# frozen_string_literal: true

# One of the study's seven passes as one would write it down: it reads a log, replaces one pattern by its marker, and
# prints the rest. `benchmarks/syscalls/log` is compared with seven of them in a pipe:
# ruby pass.rb load < LOG | ruby pass.rb yaml | …
SEQUENCES = {
  "load" => ["%LOAD", %w[open fstat64 close open fstat64 fgetxattr fgetxattr close]],
  "yaml" => ["%YAML", %w[open fstat64 fgetxattr fgetxattr close]],
  "stls" => ["%STLS", %w[stat64 lstat64]]
}.freeze
NOT_GEMS = %w[config csv fonts images javascripts stylesheets svg].freeze

def lines = $stdin.each_line(chomp: true).lazy.map { |line| line.split("\t", 2) }

def put(line) = $stdout.puts(line.join("\t"))

def sequence(marker, calls)
  held = []
  lines.each do |line|
    held << line
    next if held.size < calls.size

    if held.map(&:first) == calls && held.map(&:last).uniq.size == 1
      put([marker, held.first.last])
      held.clear
    else
      put(held.shift)
    end
  end
  held.each { |line| put(line) }
end

def walks
  deepest = nil
  lines.each do |line|
    if deepest && line[0] == "lstat64" && line[1].start_with?("#{deepest}/") && !line[1].index("/", deepest.size + 1)
      deepest = line[1]
      next
    end
    put(["%RRPI", deepest]) if deepest
    deepest = nil
    line[0] == "lstat64" && line[1].match?(%r{\A/[^/]+\z}) ? deepest = line[1] : put(line)
  end
  put(["%RRPI", deepest]) if deepest
end

def scans(call, marker, counted)
  run = []
  flush = lambda do
    if run.size > 1
      put([marker, File.basename(run.last), *(run.size if counted)])
    else
      run.each { |path| put([call, path]) }
    end
    run = []
  end
  lines.each do |line|
    if line[0] == call
      flush.call unless run.empty? || yield(run.last, line[1])
      run << line[1]
    else
      flush.call
      put(line)
    end
  end
  flush.call
end

def gems
  chunk = []
  deeper = false
  flush = lambda do
    gem = !chunk.empty? && !chunk[0][1].include?("/") && !NOT_GEMS.include?(chunk[0][1]) && chunk.size > 8
    gem ? put(["%SGEM", "(some-gem)", chunk.size]) : chunk.each { |line| put(line) }
    chunk = []
    deeper = false
  end
  lines.each do |line|
    if %w[stat64 lstat64].include?(line[0])
      top = !line[1].include?("/")
      flush.call if deeper && top
      deeper = true unless top
      chunk << line
    else
      flush.call
      put(line)
    end
  end
  flush.call
end

case (name = ARGV.fetch(0))
when *SEQUENCES.keys then sequence(*SEQUENCES.fetch(name))
when "rrpi" then walks
when "scan"
  scans("open", "%SCAN", false) { |before, path| path.end_with?(File.basename(before)) && path != before }
when "sgem" then gems
when "asds"
  scans("stat64", "%ASDS", true) { |before, path| File.basename(path) == File.basename(before) && path != before }
end
