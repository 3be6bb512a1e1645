# The first file of Pitwall in a measured process: RUBYOPT makes every Ruby that the command starts require it.
#
# That may be any Ruby. The file keeps to the syntax of old Rubies, and loads newer files only after it has checked the
# version. It may run before RubyGems and Bundler, or without them, so it loads files of this gem only, by absolute
# path. It never raises, and writes nothing to the program's own streams. A problem becomes a line in
# PITWALL_PARTS/messages, which the command shows when the program has ended.

if (parts = ENV["PITWALL_PARTS"]) && !parts.empty?
  begin
    problem = nil
    began = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
    if !defined?(RUBY_ENGINE) || RUBY_ENGINE != "ruby"
      problem = "is not CRuby"
    elsif (RUBY_VERSION.split(".").map { |number| number.to_i } <=> [3, 1]) < 0
      problem = "is older than Ruby 3.1"
    else
      # __FILE__ may be the path of a link to this file (Launch::PlainPath). The other files are beside the file itself.
      core = File.expand_path("../..", File.realpath(__FILE__))
      require "rbconfig" # not loaded under --disable-gems
      %w[version errors native].each { |name| require File.join(core, name) }
      Pitwall.load_native!
      require File.join(core, "collect/session")
      Pitwall::Collect::Session.start_from_env(ENV, began)
    end
  rescue SignalException, SystemExit
    raise # the program is being ended
  rescue Exception => error # rubocop:disable Lint/RescueException -- a LoadError or a NoMemoryError is no StandardError
    problem = "could not be recorded: " + error.message.to_s.split("\n").first.to_s
  end

  if problem
    begin
      # One appending write, because several processes may write at the same time. The line has no process id, so that
      # equal lines can be shown as one.
      line = "ruby " + RUBY_VERSION + " (" + RUBY_PLATFORM + ") " + problem
      File.open(File.join(parts, "messages"), "a", 0600) { |file| file.syswrite(line[0, 1000] + "\n") }
    rescue StandardError
      nil # the folder is gone: the command that reads it has ended
    end
  end
end
