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
        "yaml" => "YAML", "json" => "JSON", "zoneinfo" => "time zone"
      }.freeze
      ENDS = { "booted" => "until its first request, job or test, or Pitwall.booted",
               "end" => "until the process ended", "killed" => "until the last load that is recorded" }.freeze
      TIMES = %i[wall cpu gc].freeze
      CACHES = { "fastboot" => "pitwall/fastboot" }.freeze
      # What switches a cache off.
      WITHOUT = { "fastboot" => "PITWALL_FASTBOOT=off", "bootsnap" => "DISABLE_BOOTSNAP=1" }.freeze
      private_constant :KINDS, :ENDS, :TIMES, :CACHES, :WITHOUT

      module_function

      # What the tree says before a path: "autoload", "not ended", or "" for a plain require that ended. "uncached" is a
      # file that did not come from the cache, where most files did.
      #: (Analyse::Boot::Node, Analyse::Boot) -> String
      def kind(node, boot)
        ending = { 1 => "not ended", 2 => "raised" }[node.row.ending]
        uncached = "uncached" if node.cached? == false && boot.warm?
        [KINDS.fetch(node.kind, node.kind), ending, uncached].compact.reject(&:empty?).join(", ")
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
         "#{Units.duration(boot.own_ns)} that Pitwall needed to start",
         "#{Units.duration(figures[:cpu])} CPU, with what Pitwall needed to start",
         "#{Units.count(before.fetch("features", 0))} → #{Units.count(figures[:features])} features, " \
         "#{Units.things(figures[:load_path], "folder")} in the load path, " \
         "#{Units.count(figures[:objects])} objects (#{Units.bytes(figures[:bytes])}), " \
         "#{Units.bytes(figures[:rss])} resident, " \
         "#{Units.things(figures[:gc_runs], "collection")} (#{Units.duration(figures[:gc])})" \
         "#{", #{Units.things(figures[:calls], "file-system call")}" if figures[:calls]}",
         *boot.caches.map { |row| cached(row) }]
      end

      # "bootsnap: 2,120 of 2,125 files came from its cache (4 miss, 1 stale)"
      #: (Analyse::Boot::Cached::Row) -> String
      def cached(row)
        others = row.outcomes.sort_by { |word, count| [-count, word] }
        list = others.map { |word, count| "#{Units.count(count)} #{word}" }.join(", ")
        files = Units.things(row.hits + row.misses, "file")
        "#{cache(row.name)}: #{Units.count(row.hits)} of #{files} came from its cache#{" (#{list})" if others.any?}"
      end

      # The name of a cache, as a program requires it.
      #: (String) -> String
      def cache(name) = CACHES.fetch(name, name)

      # What the figures leave out.
      #: (Analyse::Boot) -> Array[String]
      def notes(boot)
        late = boot.late.size
        others = boot.others.map { |segment| segment.header.pid }.uniq.size
        beside = boot.nodes.reject { |node| boot.main?(node) }.size
        [("times and objects include what Pitwall needs to watch which files are used" if boot.uses.known?),
         ("of files that came from a cache, compile is the time to read it there" if
          boot.caches.any? || boot.bootsnap?),
         ("#{Units.things(late, "load")} began after the boot" if late.positive?),
         ("#{Units.things(beside, "load")} ran in other threads; their times are not part of the sums" if
          beside.positive?),
         ("#{Units.things(others, "other process")} recorded as well; the one with most files is shown" if
          others.positive?)].compact
      end

      #: (Analyse::Boot) -> Array[String]
      def losses(boot)
        [("#{Units.things(boot.lost, "load")} could not be recorded" if boot.lost.positive?),
         ("#{Units.things(boot.unwatched, "file")} were loaded by something that Pitwall does not watch: they have " \
          "no rows" if boot.unwatched.positive?)].compact
      end

      # What to do, with the time that it saves.
      # @param location [Location] shortens paths
      #: (Analyse::Boot::Advice, Location) -> String
      def advice(advice, location)
        "#{advice.bound ? "up to" : "about"} #{Units.duration(advice.saving_ns)}: #{sentence(advice, location)}"
      end

      # The environment variable to set in one of two boots, to see what the advice saves: one that starts the
      # accelerator, switches a cache or the gem debug off, or has Bundler start once; or one for a heap that begins as
      # large as this boot's ended. nil: no variable shows it.
      #: (Analyse::Boot::Advice, String?) -> String?
      def setting(advice, ruby)
        return "RUBYOPT=-rpitwall/fastboot" if %w[compile_cache time_zones].include?(advice.kind)
        return WITHOUT.fetch(advice.subject) if advice.kind == "cold_cache"
        return "BUNDLE_VERSION=system" if advice.kind == "exec" && advice.subject
        return "RUBY_DEBUG_ENABLE=0" if advice.kind == "debugger"

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
          "use a compile cache (pitwall/fastboot, bootsnap): to find, read and compile " \
          "#{Units.things(figures[:files], "file")} took #{Units.duration(figures[:ns])}"
        when "cold_cache"
          "boot again, or fill the cache in the image build: #{cache(advice.subject)} did not have the code of " \
          "#{Units.things(figures[:files], "file")}"
        when "late_cache"
          "start #{cache(advice.subject)} earlier: #{Units.things(figures[:files], "file")} were compiled without it"
        when "time_zones"
          "keep time zones between boots (pitwall/fastboot): tzinfo read #{Units.things(figures[:files], "file")}#{at}"
        when "heap" then "begin with a larger heap: #{Units.things(figures[:runs], "collection")} ran during the boot"
        when "exec"
          if advice.subject
            "have Bundler start the command once: the lock names another version of Bundler " \
            "(bundle update --bundler=VERSION)"
          else
            "start the program itself: the process was another program before (exec)"
          end
        when "debugger"
          "start the gem debug when `debugger` is first called (require: \"debug/prelude\" in the Gemfile): " \
          "the boot waited for its thread after loading each of #{Units.count(figures[:count])} files and strings#{at}"
        when "gem"
          "load #{advice.subject} where it is used, or not at all: #{Units.things(figures[:files], "file")}" \
          "#{"; what Bundler.require loads of it was never used" if figures[:entry_unused]}#{at}" \
          "#{others(figures[:others], location)}"
        when "unused_gem"
          "#{advice.subject} was never used (#{Units.things(figures[:files], "file")}): " \
          "#{"require: false in the Gemfile, and " if figures[:in_gemfile]}require it where it is needed#{at}" \
          "#{others(figures[:others], location)}"
        when "unused_file"
          "#{location.text(advice.subject, 0)} was never used: require it where it is needed, or autoload it#{at}"
        when "initializer"
          "make this initializer do less: #{location.text(advice.subject, 0)}#{at_of_name(advice, at)}"
        when "own_code"
          "do less while this file is loaded: #{location.text(advice.subject, 0)} " \
          "(#{Units.count(figures[:objects])} objects)"
        when "repeats"
          "leave out requires of files that are loaded: #{Units.count(figures[:count])}" \
          "#{", #{Units.count(figures[:there])} of them in #{location.text(*advice.place)}" if advice.place}"
        when "failed" then "ask for no file that is not there: #{Units.things(figures[:count], "load")} failed, " \
                           "as that of #{advice.subject}"
        end
      end
      private_class_method :sentence

      # Other lines that ask for a gem.
      def others(places, location)
        return "" if places.empty?

        first = location.text(*places.first)
        places.one? ? "; #{first} asks for it, too" : "; #{places.size} other lines ask for it, too, as #{first}"
      end
      private_class_method :others

      # A file stands for itself.
      def at_of_name(advice, at) = advice.place && advice.place[0] == advice.subject ? "" : at
      private_class_method :at_of_name
    end
  end
end
