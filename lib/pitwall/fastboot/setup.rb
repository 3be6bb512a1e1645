# frozen_string_literal: true

# Core Ruby, rbconfig and this library's own files only: it is loaded into programs that have not chosen their gems yet.
require "rbconfig" # not loaded under --disable-gems
require_relative "../version"
require_relative "../errors"
require_relative "../native"
require_relative "compile_cache"
require_relative "counts"
require_relative "data_cache"
require_relative "data_facts"
require_relative "data_library"
require_relative "exceptions"
require_relative "file_state"
require_relative "folder"
require_relative "format"
require_relative "last_boot"
require_relative "load_index"
require_relative "moved_code"
require_relative "process_pack"
require_relative "store"
require_relative "warnings"

module Pitwall
  # Makes a program boot faster: `require "pitwall/fastboot"` before anything else is loaded (doc/fastboot.md).
  #
  # It never changes what a program does: in any doubt a file is found and compiled by Ruby itself.
  module Fastboot
    # Options of Bootsnap.setup that have no effect here (doc/fastboot.md).
    WITHOUT_EFFECT = %i[development_mode ignore_directories revalidation].freeze
    MAIN_RACTOR = (Ractor.current if defined?(Ractor))
    # If a boot takes less memory than expected, the next one expects this share of what this one expected.
    LESS = 0.9
    private_constant :WITHOUT_EFFECT, :MAIN_RACTOR, :LESS

    @counts = nil

    class << self
      # Starts it. The options of `Bootsnap.setup` are understood.
      # @param cache_dir [String, nil] the folder that has the folder of the cache; nil: see doc/fastboot.md
      # @param compile_cache_iseq whether to keep compiled code
      # @param compile_cache_yaml whether to keep what YAML files are parsed to
      # @param compile_cache_json whether to keep what JSON files are parsed to
      # @param compile_cache_zoneinfo whether to keep what tzinfo makes of files of time zones
      # @param load_path_cache whether to find files of `require` without searching
      # @param gc whether garbage collection rests while files are loaded
      # @param prefault whether another thread touches new memory before the program needs the memory
      # @param lazy_gems whether gems wait that `pitwall boot cache lazy` has listed
      # @param readonly use the pack, but never write it
      # @param others options of Bootsnap.setup that have no effect here
      # @return whether anything of it is on
      #: (**untyped) -> bool
      def setup(cache_dir: nil, compile_cache_iseq: true, compile_cache_yaml: true, compile_cache_json: true,
                compile_cache_zoneinfo: wanted?("ZONEINFO"), load_path_cache: true, gc: wanted?("GC"),
                prefault: wanted?("PREFAULT"), lazy_gems: wanted?("LAZY"), readonly: readonly?, **others)
        unknown = others.keys - WITHOUT_EFFECT
        raise ArgumentError, "unknown option #{unknown.first}" if unknown.any?
        return on? if @counts

        @counts = Counts.new
        data = { DataFacts::PSYCH => compile_cache_yaml, DataFacts::JSON => compile_cache_json,
                 DataFacts::TZINFO => compile_cache_zoneinfo }.select { |_, wanted| wanted }.keys
        start(cache_dir, compile_cache_iseq, data, load_path_cache, readonly, lazy_gems) do
          rest_gc(gc)
          start_prefault if prefault
        end
        on?
      end

      # Loads the extension.
      # @return [String, nil] why this Ruby can't use a pack
      # @api private
      def unavailable = load_extension || unusable

      # Is something of it on?
      #: () -> bool
      def on? = !(@pack.nil? && @index.nil?)

      # What it has done in this process: counts, and under "reasons" why it did not help.
      #: () -> Hash[String, untyped]
      def stats
        return { "reasons" => ["it was not set up"] } if @counts.nil?

        count_at_end
        { **@counts.to_h, "reasons" => @counts.reasons.dup }
      end

      # Writes now what has been compiled and parsed. Otherwise it is written when the process ends.
      #: () -> void
      def flush = @pack&.flush

      # @api private
      def main_ractor? = MAIN_RACTOR.nil? || Ractor.current.equal?(MAIN_RACTOR)

      # Called before Process.daemon, which ends this process without its at_exit handlers. So this method writes the
      # pack.
      # @return whether to call after_daemon
      # @api private
      def before_daemon
        begin
          flush_last
        rescue *Exceptions::OWN => error
          @counts.because("nothing was stored", error.class, error.message)
        end
        same_process?
      end

      # Called in the child that Process.daemon has made. From now on the child is the process that was set up.
      # @api private
      def after_daemon
        @pid = Process.pid
      end

      # Called for files that are loaded, if `require` may have been replaced since the last one.
      # @api private
      def keep_index
        @index&.keep
        @lazy_gems&.keep
      end

      # Loads the gems that wait until they are used. A server that forks calls it before, so that its children share
      # them.
      #: () -> void
      def load_lazy_gems = @lazy_gems&.load_all

      # @api private
      attr_accessor :lazy_gems

      # Does the environment say that packs are not to be written?
      # @api private
      def readonly? = flag?("READONLY")

      # Is code compiled so that Coverage can count its runs?
      # @api private
      def covered?
        return Native.covered? if Native.respond_to?(:covered?)

        defined?(::Coverage) ? true : false # this Ruby does not say
      end

      private

      # If anything fails here, the program boots without the accelerator. Yields if compiled code is kept: what the
      # block starts needs the hook of compiled code.
      def start(cache_dir, compile_cache_iseq, data, load_path_cache, readonly, lazy_gems)
        reason = unavailable
        return @counts.because(reason) if reason

        start_index if load_path_cache
        folder = folder_of(cache_dir)
        start_caches(folder, compile_cache_iseq, data, readonly) if compile_cache_iseq || data.any?
        yield if @cache
        start_lazy_gems(folder) if lazy_gems && @index
        leave_version_to_bundler
      rescue *Exceptions::OWN => error
        @counts.because("it did not start", error.class, error.message)
      end

      # RubyGems activated a version of this gem to load this file. Bundler may be set up later and find another one in
      # the lockfile.
      def leave_version_to_bundler
        spec = Gem.loaded_specs["pitwall-core"] if defined?(Gem.loaded_specs) && !defined?(::Bundler)
        return unless spec && File.identical?(File.join(spec.full_gem_path, "lib/pitwall/fastboot/setup.rb"), __FILE__)

        Gem.loaded_specs.delete(spec.name)
        spec.activated = false
        spec.full_require_paths.each { |path| $LOAD_PATH.delete(path) }
      end

      # @return [String, nil] why there is none
      def load_extension
        file = NativeLoader.candidates("fastboot_pack").find { |path| File.file?(path) }
        require(file || "pitwall/fastboot_pack")
        nil
      rescue LoadError
        "pitwall-core has no extension for ruby #{RUBY_VERSION} (#{RUBY_PLATFORM})"
      end

      def folder_of(cache_dir) = cache_dir ? File.join(File.expand_path(cache_dir), Folder::NAME) : Folder.default

      def flag?(name) = !["", "0", "false"].include?(ENV["PITWALL_BOOT_CACHE_#{name}"].to_s)

      # Why it can do nothing in this Ruby.
      def unusable
        return "switched off by PITWALL_FASTBOOT=off" if ENV["PITWALL_FASTBOOT"] == "off"

        "Ruby::Box is on" if defined?(Ruby::Box) && Ruby::Box.enabled?
      end

      def wanted?(name) = ENV["PITWALL_FASTBOOT_#{name}"] != "off"

      # @param wanted whether garbage collection is to rest. If not, the note of earlier boots is kept all the same.
      def rest_gc(wanted)
        # Ruby 3.3 does not collect when there are too many open files while collections are disabled.
        return if RUBY_VERSION < "3.4" || !Native.respond_to?(:rest_gc)

        @can_rest = true
        return unless wanted

        expected, uncollected = %i[gc_expected gc_uncollected].map { |name| @last_boot.count(name) }
        uncollected = 0 if uncollected <= expected # earlier boots did not collect
        reason = Native.rest_gc(expected, uncollected, "#{RbConfig::CONFIG["rubyarchdir"]}/")
        @counts.because("garbage collection does not rest: #{reason}") if reason
      end

      def start_prefault
        return unless Native.respond_to?(:prefault)

        reason = Native.prefault(@last_boot.count(:heap_growth))
        @counts.because("memory is not touched early: #{reason}") if reason
      end

      # What is known only at the end.
      def count_at_end
        later = @cache&.successor
        @counts.because(later) if later
        @counts.set(:real_paths, [Native.real_paths]) if @index
        count_prefaults if @last_boot && Native.respond_to?(:prefaults)
        count_rests if @can_rest
      end

      # If this process has not measured how much its heap grew, the growth that an earlier boot noted is noted again.
      def count_prefaults
        touched, growth = Native.prefaults
        @counts.set(:prefaulted, :heap_growth, [touched, growth || @last_boot.count(:heap_growth)])
      end

      def count_rests
        rests, growths, peak, uncollected = Native.gc_rests
        @counts.set(:gc_rests, :gc_growths, :gc_peak, :gc_uncollected, :gc_expected,
                    [rests, growths, peak, not_much_less(:gc_uncollected, uncollected),
                     not_much_less(:gc_expected, peak)])
      end

      # A noted memory falls by at most a tenth per boot.
      def not_much_less(name, value) = [value, (@last_boot.count(name) * LESS).to_i].max

      def start_index
        index = LoadIndex.new(@counts)
        reason = index.install
        reason ? @counts.because("no index of $LOAD_PATH: #{reason}") : @index = index
      end

      # Most programs have no list of lazy gems, and do not load what uses it.
      def start_lazy_gems(folder)
        return unless folder && lazy_lists?(folder) && Folder.refusal(folder).nil?

        require_relative "lazy_gems"
        @lazy_gems = LazyGems.new(folder, @counts, @last_boot&.count(:gc_uncollected).to_i).tap(&:keep)
      end

      # Is there a list of any bundle? A folder that can't be listed has none.
      def lazy_lists?(folder)
        File.directory?(folder) && File.readable?(folder) &&
          Dir.children(folder).any? { |name| name.start_with?(Folder::LAZY_GEMS) }
      rescue SystemCallError
        false
      end

      # Takes the hook of compiled code even if only data is to be kept: the hook notices each loaded file.
      # @param code whether to keep compiled code
      # @param data the facts of libraries whose data to keep
      def start_caches(folder, code, data, readonly)
        return @counts.because("no compile cache: there is no folder for it") if folder.nil?

        refusal = Folder.refusal(folder)
        return @counts.because("no compile cache: #{refusal}") if refusal

        pack = ProcessPack.new(Store.new(folder), @counts, readonly: readonly)
        reason = CompileCache.take_hook
        return @counts.because("no compile cache: #{reason}") if reason

        @last_boot = LastBoot.new(folder)
        @pack = pack
        @cache = CompileCache.new(pack, @counts).tap(&:start) if code
        DataCache.new(pack, @counts, data.map { |facts| DataLibrary.new(facts) }).keep if data.any?
        @pid = Process.pid
        at_exit { finish }
        Native.watch_daemons
      end

      # Is this the process that called `setup`, or the daemon that Process.daemon made of that process?
      def same_process? = @pid == Process.pid

      # Writes the pack for the last time. `pitwall boot cache build` sets the variable.
      def flush_last = @pack.flush(last: true, wait: ENV.key?("PITWALL_BOOT_STORE"))

      def finish
        begin
          count_at_end if same_process? # first, because writing the pack takes memory
        ensure
          flush_last
        end
        return if @pack.readonly? || !same_process?

        @last_boot.write(@counts) unless ENV["PITWALL_BOOT_PROBE_PARENT"] # a probe has taken memory
      rescue StandardError => error
        # The program must end as it would without this library.
        warn "pitwall/fastboot: #{error.class}: #{error.message}" if ENV["PITWALL_DEBUG"]
      end
    end
  end
end
