# The first thing of Pitwall in a measured process: RUBYOPT makes every Ruby that the command starts require this file.
#
# That may be any Ruby, so what stands here is the syntax of old ones; nothing newer is loaded before the version is
# known. It may come before RubyGems and Bundler (or without them), so only files of this gem are loaded, by absolute
# path. It never raises, and says nothing on the program's own streams: what can't be done is a line in
# PITWALL_PARTS/messages, which the command shows when the program has ended.

if (parts = ENV["PITWALL_PARTS"]) && !parts.empty?
  begin
    problem = nil
    if !defined?(RUBY_ENGINE) || RUBY_ENGINE != "ruby"
      problem = "is not CRuby"
    elsif (RUBY_VERSION.split(".").map { |number| number.to_i } <=> [3, 1]) < 0
      problem = "is older than Ruby 3.1"
    else
      # The real path: this file may have been required through a link in a folder without spaces.
      core = File.expand_path("../..", File.realpath(__FILE__))
      require "rbconfig" # not loaded under --disable-gems
      %w[version errors native].each { |name| require File.join(core, name) }
      Pitwall.load_native!
      require File.join(core, "collect/session")
      Pitwall::Collect::Session.start_from_env(ENV)
    end
  rescue SignalException, SystemExit
    raise # someone wants the program to end
  rescue Exception => error # rubocop:disable Lint/RescueException -- a LoadError or a NoMemoryError is no StandardError
    problem = "could not be recorded: " + error.message.to_s.split("\n").first.to_s
  end

  if problem
    begin
      # One write, appended: several processes may have something to say at once. Without the process id, so that
      # equal lines can be shown as one.
      line = "ruby " + RUBY_VERSION + " (" + RUBY_PLATFORM + ") " + problem
      File.open(File.join(parts, "messages"), "a", 0600) { |file| file.syswrite(line[0, 1000] + "\n") }
    rescue StandardError
      nil # the folder is gone: the command that would have read it has ended
    end
  end
end
