# frozen_string_literal: true

require "fileutils"
require "tmpdir"
require_relative "../support/boot_application"
require_relative "../support/bootsnap_bundle"
require_relative "../support/context"
require_relative "../support/generated_shop"
require_relative "../support/result"
require_relative "../support/rounds"
require_relative "../support/shop"
require_relative "../support/statistics"
require_relative "../support/strace_counts"

module Benchmarks
  module Boot
    # What the start of a Rails application takes with the accelerator (pitwall/fastboot), with bootsnap, and with
    # neither. Each start is a fresh process. A round starts each way once, in random order. Applications are
    # examples/shop, the same without its eager load (as in development), a copy of the shop with 1,000 more classes,
    # and those in the folders of PITWALL_BOOT_APPS, in the environments that RAILS_ENV lists. PITWALL_BOOT_SHOPS=off
    # leaves out the shops.
    #
    # Caches are warm, except that "first" begins without a pack and writes it. The accelerator starts before Bundler,
    # bootsnap after it, as each is to be used. Gems wait in one of the ways only; on Ruby 3.1 in none.
    class Fastboot
      ROUNDS = 15
      # Starts that write the caches. The second one may add to what the first one wrote.
      WARMING = 2
      WAYS = { "plain" => {}, "bootsnap" => { "BENCHMARKS_BOOT" => "bootsnap", "DISABLE_BOOTSNAP" => nil },
               "pitwall" => { "BENCHMARKS_BOOT" => "pitwall", "PITWALL_FASTBOOT_LAZY" => "off" },
               "pitwall, GC as usual" => { "BENCHMARKS_BOOT" => "pitwall", "PITWALL_FASTBOOT_LAZY" => "off",
                                           "PITWALL_FASTBOOT_GC" => "off" },
               "pitwall, no prefault" => { "BENCHMARKS_BOOT" => "pitwall", "PITWALL_FASTBOOT_LAZY" => "off",
                                           "PITWALL_FASTBOOT_PREFAULT" => "off" },
               "pitwall, first" => { "BENCHMARKS_BOOT" => "pitwall" },
               "pitwall, gems wait" => { "BENCHMARKS_BOOT" => "pitwall" } }.freeze
      FIRST = "pitwall, first"
      LAZY = "pitwall, gems wait"
      WARMED = ["bootsnap", "pitwall", LAZY].freeze
      FIND_LAZY_GEMS = [RbConfig.ruby, *PITWALL, "boot", "cache", "lazy", "--"].freeze
      # [way, figure, beside which way, limit, what it says]
      RATIO_GOALS = [["pitwall", :wall_ns, "bootsnap", 0.65, "at most 0.65 of bootsnap's wall time"],
                     ["pitwall, GC as usual", :wall_ns, "bootsnap", 0.80, "with GC as usual, at most 0.80 of it"],
                     ["pitwall", :peak_kb, "bootsnap", 1.35, "at most 1.35 of bootsnap's peak RSS"],
                     [LAZY, :wall_ns, "bootsnap", 0.65, "while gems wait, at most 0.65 of it"],
                     [FIRST, :wall_ns, "plain", 1.15, "the first boot, at most 1.15 of a plain one"]].freeze
      MOST_CALLS = 1
      CALLS_GOAL = "at most #{MOST_CALLS} file-system call for each loaded feature"
      # Label, figure, and the median's format and unit, or beside which way the ratio is.
      LINES = [["wall, s", :wall_ns, ["%.3f", 1e9]], ["of bootsnap's", :wall_ns, "bootsnap"],
               ["of a plain boot's", :wall_ns, "plain"],
               ["CPU, s", :cpu_ns, ["%.3f", 1e9]], ["of bootsnap's", :cpu_ns, "bootsnap"],
               ["peak RSS, MB", :peak_kb, ["%.0f", 1e3]], ["of bootsnap's", :peak_kb, "bootsnap"]].freeze
      DEVELOPMENT = "shop in development"
      SHOPS = ["shop", DEVELOPMENT, "generated"].freeze
      private_constant :ROUNDS, :WARMING, :WARMED, :WAYS, :FIRST, :LAZY, :FIND_LAZY_GEMS, :RATIO_GOALS, :MOST_CALLS,
                       :CALLS_GOAL, :LINES, :DEVELOPMENT, :SHOPS

      # What was measured of a command of an application. calls: { way => file-system calls a feature }
      Measured = Struct.new(:title, :rounds, :calls)
      private_constant :Measured

      def initialize(context)
        @context = context
        @notes = []
      end

      #: () -> Result
      def call
        all = with_applications do |applications|
          applications.flat_map { |application| measure_all(application) }
        end
        Result.new(tables: all.reject { |one| one.rounds.empty? }.map { |one| table(one) },
                   goals: all.flat_map { |one| goals(one) }, notes: @notes.uniq, data: all.map(&:to_h))
      end

      private

      # Yields them while the folder that has the copy of the shop is there.
      def with_applications
        others = ENV.fetch("PITWALL_BOOT_APPS", "").split(":")
        others = others.flat_map { |path| BootApplication.all_at(File.expand_path(path)) }
        parent = File.join(ROOT, "tmp/benchmarks")
        FileUtils.mkdir_p(parent)
        Dir.mktmpdir("boot-", parent) do |folder|
          @folder = folder
          own = ENV["PITWALL_BOOT_SHOPS"] == "off" ? [] : shops
          yield (@context.quick? ? own.last(1) : own) + others
        end
      end

      # The copy is made first: a file that has just been written is compared by its content.
      def shops
        copy = File.join(@folder, "shop")
        GeneratedShop.new(copy).write
        bundle = BootsnapBundle.new(install: @context.peers.use?, err: @context.err)
        @missing = bundle.missing
        environment = { **Shop.environment(gemfile: bundle.gemfile), "RAILS_ENV" => "production" }
        [BootApplication.new("shop", Shop::FOLDER, environment),
         BootApplication.new(DEVELOPMENT, Shop::FOLDER, { **environment, "RAILS_ENV" => "development",
                                                                         "SHOP_EAGER_LOAD" => "off" }),
         BootApplication.new("generated", copy, { **environment, "SHOP_TMP" => File.join(copy, "tmp") })]
      end

      def measure_all(application)
        application.commands(ENV["BOOT_COMMANDS"] == "all").map do |words|
          title = "#{application.name}, #{words.join(" ")}"
          next absent(title, @missing) if @missing && SHOPS.include?(application.name)

          measure(title, application, words)
        rescue Context::Failure => e
          absent(title, e.message)
        end
      end

      def absent(title, reason)
        @notes << "#{title}: #{reason}"
        Measured.new(title, [], {})
      end

      def measure(title, application, words)
        caches = Dir.mktmpdir("caches-", @folder)
        start = lambda do |way, **options|
          FileUtils.rm_rf(pack_folder(caches, way)) if way == FIRST
          application.start(words, environment(way, caches), **options)
        end
        warm(start, caches)
        find_lazy_gems(application, words, caches, start) if RUBY_VERSION >= "3.2"
        rounds = Rounds.take(@context, WAYS.keys, @context.rounds(ROUNDS), &start)
        Measured.new(title, rounds, count_calls(start))
      end

      def environment(way, caches)
        { "DISABLE_BOOTSNAP" => "1", "BOOTSNAP_CACHE_DIR" => File.join(caches, "bootsnap"),
          "PITWALL_BOOT_CACHE" => pack_folder(caches, way), **WAYS.fetch(way) }
      end

      # Boots while gems wait have a folder of their own. The folder has the note of the last boot.
      def pack_folder(caches, way) = File.join(caches, { FIRST => "first", LAZY => "lazy" }.fetch(way, "pitwall"))

      def warm(start, caches)
        (@context.quick? ? 1 : WARMING).times { WARMED.each { |way| start.call(way) } }
        { "bootsnap" => "bootsnap/bootsnap/**/*", "the accelerator" => "pitwall/*.pack" }.each do |name, pattern|
          raise Context::Failure, "#{name} has not written its cache" if Dir.glob(pattern, base: caches).empty?
        end
      end

      # The command starts the application itself, so the accelerator must not start before.
      def find_lazy_gems(application, words, caches, start)
        application.start(words, { **environment(LAZY, caches), "BENCHMARKS_BOOT" => nil }, under: FIND_LAZY_GEMS)
        start.call(LAZY) # notes what a boot with the list needs
      end

      # One start each: counts hardly vary.
      def count_calls(start)
        return {} if @context.quick?
        return {}.tap { @notes << "strace is absent: file-system calls were not counted" } unless StraceCounts.there?

        WAYS.keys.to_h do |way|
          started = nil
          calls = StraceCounts.count(@folder) { |words| started = start.call(way, under: words) }
          [way, calls.fdiv(started.fetch(:features))]
        end
      end

      def table(measured)
        rows = LINES.map do |label, figure, shown|
          cell = shown.is_a?(Array) ? :median : :ratio_cell
          [label, *WAYS.keys.map { |way| send(cell, measured, way, figure, *shown) }]
        end
        rows << ["calls a feature", *measured.calls.values.map { |calls| format("%.1f", calls) }] if measured.calls.any?
        Table.new("#{measured.title} (#{measured.rounds.size} rounds; medians; ratios with 95% intervals)",
                  ["", *WAYS.keys], rows)
      end

      def median(measured, way, figure, format, unit)
        Kernel.format(format, Statistics.median(measured.rounds.map { |round| round[way][figure] }) / unit)
      end

      def ratio_cell(measured, way, figure, other)
        way == other ? "1" : show(ratio(measured, way, figure, other))
      end

      def ratio(measured, way, figure, other)
        Statistics.ratio(measured.rounds.map { |round| round[way][figure].fdiv(round[other][figure]) })
      end

      def show(estimate) = estimate.text("%.3f")

      def goals(measured)
        found = RATIO_GOALS.map do |way, figure, other, limit, text|
          text = "#{measured.title}: #{text}"
          estimate = ratio(measured, way, figure, other) if measured.rounds.any?
          next Goal.not_measured(text) unless estimate&.high&.finite?

          Goal.at_most(text, show(estimate), estimate, limit)
        end
        [*found, calls_goal(measured)]
      end

      def calls_goal(measured)
        text = "#{measured.title}: #{CALLS_GOAL}"
        calls = measured.calls["pitwall"]
        calls ? Goal.new(text, format("%.1f", calls), calls <= MOST_CALLS) : Goal.not_measured(text)
      end
    end
  end
end
