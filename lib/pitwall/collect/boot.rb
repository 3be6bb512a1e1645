# frozen_string_literal: true

require_relative "../compat"

module Pitwall
  module Collect
    # Watches steps of a boot that libraries do in Ruby: Bundler.setup and Bundler.require, Rails' initializers,
    # Zeitwerk's eager load, files of YAML, JSON and time zones. What `require` and its like load is watched by the
    # extension.
    #
    # Caches of compiled code (Bootsnap, pitwall/fastboot) say of each file whether they had its code.
    #
    # One module for each step is prepended to the library's own class. The extension defines the method in it
    # (`run` in spans.c, code_caches.c), so a backtrace has one more frame of that method's name.
    # @api private
    module Boot
      # names: the path of the constant · own: whether the method is the constant's own (`def self.`)
      # kind: of a load, or the name of a cache
      Step = Struct.new(:names, :own, :method, :kind)
      STEPS = [
        Step.new(%i[Bundler], true, :setup, "bundler_setup"),
        Step.new(%i[Bundler], true, :require, "bundler_require"),
        Step.new(%i[Rails Initializable Initializer], false, :run, "initializer"),
        Step.new(%i[Zeitwerk Loader], false, :eager_load, "eager_load"),
        Step.new(%i[Psych], true, :load_file, "yaml"),
        Step.new(%i[Psych], true, :safe_load_file, "yaml"),
        Step.new(%i[Psych], true, :unsafe_load_file, "yaml"),
        Step.new(%i[JSON], true, :load_file, "json"),
        Step.new(%i[JSON], true, :load_file!, "json"),
        Step.new(%i[TZInfo DataSources ZoneinfoReader], false, :read, "zoneinfo"),
        Step.new(%i[Bootsnap], true, :_instrument, "bootsnap"),
        Step.new(%i[Pitwall Fastboot Counts], false, :add, "fastboot")
      ].freeze
      CACHES = %w[bootsnap fastboot].freeze
      # Of the library: the file that completes it.
      LAST_FILES = { Psych: "/psych.rb", JSON: "/json/ext.rb",
                     TZInfo: "/tzinfo/data_sources/zoneinfo_data_source.rb" }.freeze
      private_constant :Step, :STEPS, :CACHES, :LAST_FILES

      @watched = {}

      class << self
        # Watches steps of libraries that the program loads from now on, and of those that it has loaded.
        #: () -> void
        def watch
          libraries = STEPS.map { |step| step.names.first }.uniq
          libraries.each { |name| look(name) if Object.const_defined?(name, false) && !Object.autoload?(name, false) }
          Native.watch(self, libraries)
        end

        # Called by the extension when a file is about to run and a library's constant exists.
        # @return [Boolean] whether nothing is left to do
        #: (Symbol) -> bool
        def look(name)
          return false if Object.autoload?(name, false) # to look at it would load it
          return false if name == :Pitwall && !Pitwall.const_defined?(:Fastboot, false) # asked before each file

          STEPS.select { |step| step.names.first == name }.map { |step| watched?(step) }.all?
        end

        # What a piece of code and the code within it define: 2 a method, 1 only blocks, 0 neither. Called by the
        # extension where uses are recorded.
        #: (RubyVM::InstructionSequence) -> Integer
        def defines(code)
          # A method or a block begins with its event.
          event = code.trace_points.first&.last
          return 2 if event == :call

          most = event == :b_call ? 1 : 0
          code.each_child do |inner|
            found = defines(inner)
            return 2 if found == 2 # each further child would cost objects

            most = 1 if found == 1
          end
          most
        end

        private

        def watched?(step)
          @watched[step] ||= begin
            owner = Compat.constant(*step.names)
            owner = owner.singleton_class if owner && step.own
            !owner.nil? && owner.method_defined?(step.method, true) && ready?(step) && prepend(owner, step)
          end
        end

        # pitwall/fastboot replaces methods of Psych, JSON and tzinfo only if these are the library's own, so it must
        # come first. It comes when the next file is loaded after the library. Pitwall asks `ready?` after that. But if
        # a string is evaluated before the next file, Pitwall comes first, and pitwall/fastboot keeps no data
        # (doc/boot.md, Limits).
        # Bootsnap defines the method where its extension is loaded.
        def ready?(step)
          return ::Bootsnap.respond_to?(:instrumentation_enabled=) if step.kind == "bootsnap"

          last = LAST_FILES[step.names.first]
          return true if last.nil? || !Pitwall.const_defined?(:Fastboot, false)

          $LOADED_FEATURES.any? { |path| path.end_with?(last) }
        end

        def prepend(owner, step)
          span = Module.new
          if CACHES.include?(step.kind) then Native.define_cache_teller(span, step.method, step.kind)
          else Native.define_span(span, step.method, step.kind)
          end
          owner.prepend(span)
          ::Bootsnap.instrumentation_enabled = true if step.kind == "bootsnap"
          true
        end
      end
    end
  end
end
