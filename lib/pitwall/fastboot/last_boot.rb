# frozen_string_literal: true

require_relative "counts"

module Pitwall
  module Fastboot
    # The counts of the last program that ended: a file beside the pack, for `pitwall boot cache stats`.
    # @api private
    class LastBoot
      NAME = "last-boot"
      LONGEST = 1 << 20 # bytes of the file
      MOST = (1 << 32) - 1 # of a count

      # @return the counts that the file has (Counts::MEANINGS), "command" (a String), "reason" (an Array of Strings).
      #   nil: there is no such file, or the file has no line for "command"
      #: (String) -> Hash[String, untyped]?
      def self.read(folder)
        path = File.join(folder, NAME)
        return unless File.file?(path) # an exception would be printed with --debug

        text = Folder.text(path, LONGEST).scrub
        found = { "reason" => [] }
        text.lines("\n", chomp: true).each do |line|
          name, value = line.split("=", 2)
          note(found, name, value.to_s)
        end
        found if found.key?("command")
      rescue SystemCallError
        nil
      end

      def self.note(found, name, value)
        if name == "reason"
          found[name] << value
        elsif name == "command"
          found[name] = value
        elsif Counts::MEANINGS.key?(name)
          found[name] = value.to_i.clamp(0, MOST)
        end
      end
      private_class_method :note

      # @param folder [String] the folder of the pack
      #: (String) -> void
      def initialize(folder)
        @folder = folder
        @command = command.b.tr("\n", " ").force_encoding("UTF-8").scrub
      end

      # Replaces the file. Nothing is lost where that fails.
      #: (Counts) -> void
      def write(counts)
        return unless File.directory?(@folder)

        Folder.replace(File.join(@folder, NAME), File::TRUNC) do |file|
          file.write("command=#{@command.b}\n", counts.to_s.b)
        end
      rescue SystemCallError
        nil
      end

      # A count of the last boot, such as :gc_expected. 0 if the file does not have the count, or if another program
      # wrote the file.
      #: (Symbol) -> Integer
      def count(name)
        @last ||= LastBoot.read(@folder).to_h
        @last["command"] == @command ? @last[name.name].to_i : 0
      end

      private

      # The program's name in the file. It is taken at the start, because a server may change its title later. Programs
      # load other files in another environment, and for another first argument (`rails server`, `rails console`).
      # `bundle exec` runs any program, so its first two arguments are taken ("exec rails").
      def command
        environment = ENV["RAILS_ENV"] || ENV["RACK_ENV"]
        words = File.basename($PROGRAM_NAME) == "bundle" ? ARGV.first(2) : ARGV.first(1).grep(/\A[a-z][\w:-]*\z/i)
        [*("RAILS_ENV=#{environment}" if environment), $PROGRAM_NAME, *words].join(" ")
      end
    end
  end
end
