# frozen_string_literal: true

require "pitwall/show/terminal/units"

module Pitwall
  module Show
    # Words about a boot: its figures, its kinds of loads, and what to do.
    module BootWords
      WEIGHTS = %w[wall cpu gc objects bytes rss calls].freeze
      NOTHING = "No file was loaded."
      # Kinds of loads that a row names, because they are no plain require.
      KINDS = {
        "require" => "", "require_relative" => "", "load" => "load", "autoload" => "autoload", "eval" => "eval",
        "extension" => "extension", "routes" => "routes", "bundler_setup" => "Bundler.setup",
        "bundler_require" => "Bundler.require", "initializer" => "initializer", "eager_load" => "eager load",
        "yaml" => "YAML", "json" => "JSON"
      }.freeze
      ENDS = { "booted" => "until its first request, job or test, or Pitwall.booted",
               "end" => "until the process ended", "killed" => "until the last load that is recorded" }.freeze
      TIMES = %i[wall cpu gc].freeze
      private_constant :KINDS, :ENDS, :TIMES

      module_function

      # "autoload", "" for a plain require
      #: (Analyse::Boot::Node) -> String
      def kind(node)
        ending = { 1 => "not ended", 2 => "raised" }[node.row.ending]
        [KINDS.fetch(node.kind, node.kind), ending].compact.reject(&:empty?).join(", ")
      end

      # A figure with its unit: "12.3 ms", "1,234", "2.1 MiB"
      #: (Integer, Symbol) -> String
      def figure(number, name)
        return Units.duration(number) if TIMES.include?(name)
        return Units.count(number) unless %i[bytes rss].include?(name)

        number.negative? ? "-#{Units.bytes(-number)}" : Units.bytes(number)
      end

      # Lines below the title.
      #: (Analyse::Boot) -> Array[String]
      def summary(boot)
        figures = boot.figures
        before = boot.sizes_before
        ["#{Units.duration(boot.wall_ns)} from the process's start #{ENDS.fetch(boot.ended_by)}, without the " \
         "#{Units.duration(boot.own_ns)} that Pitwall needed to start; with it #{Units.duration(figures[:cpu])} CPU",
         "#{Units.count(before.fetch("features", 0))} → #{Units.count(figures[:features])} features, " \
         "#{Units.things(figures[:load_path], "folder")} in the load path, " \
         "#{Units.count(figures[:objects])} objects (#{Units.bytes(figures[:bytes])}), " \
         "#{Units.bytes(figures[:rss])} resident, " \
         "#{Units.things(figures[:gc_runs], "collection")} (#{Units.duration(figures[:gc])})" \
         "#{", #{Units.things(figures[:calls], "file-system call")}" if figures[:calls]}"]
      end

      # What the figures leave out.
      #: (Analyse::Boot) -> Array[String]
      def notes(boot)
        late = boot.late.size
        others = boot.others.map { |segment| segment.header.pid }.uniq.size
        beside = boot.nodes.reject { |node| boot.main?(node) }.size
        [("times and objects include what Pitwall needs to watch which files are used" if boot.uses.known?),
         ("bootsnap is loaded: times to compile are times to read its cache" if boot.bootsnap?),
         ("#{Units.things(late, "file")} were loaded after the boot" if late.positive?),
         ("#{Units.things(beside, "load")} ran in other threads; their times are not part of the sums" if
          beside.positive?),
         ("#{Units.things(others, "other process")} recorded as well; the one with most files is shown" if
          others.positive?)].compact
      end

      #: (Analyse::Boot) -> Array[String]
      def losses(boot)
        boot.lost.positive? ? ["#{Units.things(boot.lost, "load")} could not be recorded"] : []
      end

      # What to do, with the time that it saves.
      # @param location [Location] shortens paths
      #: (Analyse::Boot::Advice, Location) -> String
      def advice(advice, location)
        "#{advice.bound ? "up to" : "about"} #{Units.duration(advice.saving_ns)}: #{sentence(advice, location)}"
      end

      # The variable that lets Ruby begin with a heap as large as that of the boot's end; nil for other advice.
      #: (Analyse::Boot::Advice, String?) -> String?
      def setting(advice, ruby)
        slots = advice.figures[:slots]
        return if advice.kind != "heap" || slots.empty?
        return "RUBY_GC_HEAP_INIT_SLOTS=#{slots.sum}" if ruby.to_s.match?(/\A3\.[12]\b/)

        "RUBY_GC_HEAP_0_INIT_SLOTS=#{slots.first}"
      end

      def sentence(advice, location)
        figures = advice.figures
        at = advice.place && !advice.place[0].to_s.empty? ? " (#{location.text(*advice.place)})" : ""
        case advice.kind
        when "compile_cache"
          "use a compile cache (bootsnap): to find, read and compile #{Units.things(figures[:files], "file")} took " \
          "#{Units.duration(figures[:ns])}"
        when "heap" then "begin with a larger heap: #{Units.things(figures[:runs], "collection")} ran during the boot"
        when "gem"
          "load #{advice.subject} where it is used, or not at all: #{Units.things(figures[:files], "file")}#{at}"
        when "unused_gem"
          "#{advice.subject} was never used (#{Units.things(figures[:files], "file")}): " \
          "#{"require: false in the Gemfile, and " if figures[:in_gemfile]}require it where it is needed#{at}"
        when "unused_file"
          "#{location.text(advice.subject, 0)} was never used: require it where it is needed, or autoload it#{at}"
        when "initializer"
          "make this initializer do less: #{location.text(advice.subject, 0)}#{at_of_name(advice, at)}"
        when "own_code"
          "do less while this file is loaded: #{location.text(advice.subject, 0)} " \
          "(#{Units.count(figures[:objects])} objects)"
        when "repeats"
          "leave out requires of files that are loaded: #{Units.count(figures[:count])}, most in " \
          "#{advice.place ? location.text(*advice.place) : "the program"}"
        when "failed" then "ask for no file that is not there: #{Units.things(figures[:count], "load")} failed, " \
                           "as that of #{advice.subject}"
        end
      end
      private_class_method :sentence

      # A file stands for itself.
      def at_of_name(advice, at) = advice.place && advice.place[0] == advice.subject ? "" : at
      private_class_method :at_of_name
    end
  end
end
