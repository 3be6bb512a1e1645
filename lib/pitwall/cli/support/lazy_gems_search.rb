# frozen_string_literal: true

require "tmpdir"
require "pitwall/errors"
require "pitwall/fastboot/lazy_list"
require "pitwall/fastboot/setup"

module Pitwall
  module CLI
    # Finds the gems of a program that can be loaded when they are first used, and writes their list into the cache. The
    # first boot looks at what loading each gem changes. Others compare the program with and without the list.
    class LazyGemsSearch
      # path:     the file of the list; there is no such file if no gem waits, or if the boots differ
      # waiting:  Array<LazyList::Entry> of gems that wait
      # used:     of gems that could wait, but are used by this boot
      # loaded:   of all others
      # compared: BootRuns::Compared
      Found = Struct.new(:path, :waiting, :used, :loaded, :compared, keyword_init: true) do
        # Gems whose loading takes time, of those that are loaded at once.
        #: () -> Array[untyped]
        def heavy = loaded.select { |entry| entry.ns >= Fastboot::LazyList::LEAST_NS }
      end

      ROUNDS = 5 # of boots with a shorter list
      NAME_OF_VALUE = /\A[\w:]+(?: @@?\w+)?/
      private_constant :ROUNDS, :NAME_OF_VALUE

      #: (BootRuns, String) -> void
      def initialize(boots, folder)
        @boots = boots
        @folder = folder
      end

      # @return [Found, nil] nil: a boot failed, see BootRuns#failed
      # @raise [CannotMeasure] the program has no Gemfile, or defines something else in each boot
      #: () -> Found?
      def call
        path, entries = try
        return if entries.nil?

        compared = compare(path, entries) or return
        can_wait, loaded = entries.partition { |entry| entry.changes.empty? }
        used, waiting = can_wait.partition { |entry| compared.woken.include?(entry.name) }
        Found.new(path: path, waiting: waiting, used: used, loaded: loaded, compared: compared)
      ensure
        if path
          keep(path + Fastboot::LazyList::TRIED, [])
          keep(path, compared&.same? ? waiting : [], compared&.plain_memory.to_i)
        end
      end

      private

      # Boots while gems wait. If a gem defines something else when it is loaded later, it can't wait: boots again.
      # @return [BootRuns::Compared, nil]
      def compare(path, entries)
        ROUNDS.times do
          keep(path + Fastboot::LazyList::TRIED, entries.select { |entry| entry.changes.empty? })
          compared = @boots.compare(values: true, env: { "PITWALL_FASTBOOT_LAZY" => "try" }) or return
          others = of_another_kind(compared, entries)
          return compared if others.empty?

          others.each { |entry, name| entry.changes << "makes #{name}, which depends on what is there then" }
        end
        raise CannotMeasure, "no two of #{2 * ROUNDS} boots have defined the same"
      end

      # Some values differ in any two boots, such as times. These values do not count.
      # @return pairs of a gem that was to wait, and the name of something that this gem defines otherwise
      def of_another_kind(compared, entries)
        lines = compared.differences.values.flatten
        names = lines.filter_map { |line| line[/\A(?:method|constant) ([\w:]+)/, 1] }
        names |= names_of(compared.plain_values, compared.fast_values) - names_of(compared.plain_values, @values)
        entries.select { |entry| entry.changes.empty? }.filter_map do |entry|
          name = names.find { |it| entry.constant_names.any? { |constant| within?(it, constant) } }
          [entry, name] if name
        end
      end

      # Names of the constants and modules' variables whose values differ.
      def names_of(some, others) = ((some - others) | (others - some)).filter_map { |line| line[NAME_OF_VALUE] }.uniq

      def within?(name, constant) = name == constant || name.start_with?("#{constant}::", "#{constant} ")

      # @return the list's path, and all gems that were loaded
      def try
        Dir.mktmpdir("pitwall-boot") do |temporary|
          probed = File.join(temporary, "probed")
          status = @boots.start(with: true, parts: %w[gem_trial probe],
                                env: { **trial_environment(temporary), **@boots.probe_environment(probed, true) })
          return [nil, @boots.fail_by("with", status)] unless status.success?

          file = File.join(temporary, "gems")
          raise CannotMeasure, "the command has loaded no Gemfile, or ended without its at_exit handlers" unless
            File.file?(file)

          @values = @boots.lines_of("#{probed}.values")
          path, text = File.binread(file).force_encoding("UTF-8").split("\n", 2)
          list = Fastboot::LazyList.parse(text) or raise CannotMeasure, "a gem has a name or path that is not UTF-8"
          [path, list.entries]
        end
      end

      # In the trial all gems are loaded at once, and garbage collection runs as usual.
      def trial_environment(temporary)
        { "PITWALL_BOOT_TRIAL" => temporary, "PITWALL_BOOT_TRIAL_PARENT" => Process.pid.to_s,
          "PITWALL_FASTBOOT_GC" => "off", "PITWALL_FASTBOOT_LAZY" => "off" }
      end

      # @param memory [Integer] the command's peak memory without the accelerator, in MiB; 0: unknown
      def keep(path, entries, memory = 0)
        if entries.empty?
          File.unlink(path) if File.exist?(path)
        else
          Fastboot::Folder.make(@folder)
          text = Fastboot::LazyList.text(Fastboot::LazyList::List.new(entries, memory))
          Fastboot::Folder.replace(path, File::TRUNC) { |file| file.write(text) }
        end
      rescue SystemCallError => error
        raise UsageError, "cannot write #{path}: #{error.message}"
      end
    end
  end
end
