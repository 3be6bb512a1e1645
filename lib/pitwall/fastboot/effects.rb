# frozen_string_literal: true

require "rbconfig"
require_relative "of_modules"
require_relative "process_state"
require_relative "watched_calls"

module Pitwall
  module Fastboot
    # Finds what a library changes in the rest of the program when the library is loaded. Before the library is loaded,
    # and again after, Effects looks at all objects (Native.object_sum), all modules (methods, ancestors, constants) and
    # the settings of the process (ProcessState). WatchedCalls notes calls that change something else. New constants are
    # listed apart from all other changes.
    #
    # Ruby notes loaded files in objects such as $LOADED_FEATURES. Objects that change when an empty file is loaded are
    # therefore ignored.
    # @api private
    class Effects
      include OfModules

      KINDS_OF_METHODS = %i[public_instance_methods protected_instance_methods private_instance_methods].freeze
      CLASS = Kernel.instance_method(:class)
      METHOD = Kernel.instance_method(:method)
      SAME = BasicObject.instance_method(:equal?)
      NOT_LOADED = Object.new.freeze # stands for the value of an autoload, also of one whose file did not define it
      # These modules keep results in variables. A program does not see whether a result was there already.
      KEEPS_RESULTS = /\A(?:Gem|Bundler|Pitwall)(?:::|\z)/
      PLAIN_INHERITED = %w[Class #<Class:Set>].freeze # owners of a method `inherited` that keeps no list
      EMPTY_EXTENSIONS = %w[enc/trans/emoji.so enc/trans/cesu_8.so].freeze # they define no constants and methods
      NAMED = 2 # names in a text
      private_constant :KINDS_OF_METHODS, :CLASS, :METHOD, :SAME, :NOT_LOADED, :KEEPS_RESULTS,
                       :PLAIN_INHERITED, :EMPTY_EXTENSIONS, :NAMED

      # @param folder [String] a folder for empty files
      #: (String) -> void
      def initialize(folder)
        @ignored = {}.compare_by_identity
        WatchedCalls.begin
        compare { load_nothing(folder) }[:changed].each { |object| @ignored[object] = true }
      end

      # What the block changes.
      # @return two lists: pairs of a module's name and the name of a new constant in that module; and sentences about
      #   all other changes
      #: () { () -> void } -> [Array[[String, String]], Array[String]]
      def of
        found = compare do
          WatchedCalls.clear
          yield
        end
        in_reach, elsewhere = found[:constants].partition { |mod, _| reachable?(mod) }
        texts = WatchedCalls.names { |receiver| @objects.key?(receiver) }.map { |name| "calls #{name}" }
        texts += elsewhere.map { |mod, names| "adds #{few(names)} to #{described(mod)}" }
        texts += autoloads(in_reach)
        texts += found[:texts] + subclasses(found[:modules]) + values(found[:changed])
        [in_reach.flat_map { |mod, names| names.map { |name| [ask(mod, :name), name.name] } }, texts.uniq]
      ensure
        @objects = @modules = nil
      end

      # The file that defined a constant first. nil: C code defined the constant, or Ruby does not know
      # @param holder the name of its module
      #: (String, String) -> String?
      def self.source(holder, name)
        OfModules.ask(Object.const_get(holder), :const_source_location, name, false)&.first
      end

      private

      # Looks at everything before and after the block.
      # @return :modules and :constants that are new, :changed objects, :texts of all else
      def compare
        GC.start # fewer objects to look at
        process = ProcessState.now
        without_warnings { look }
        yield
        found = { modules: [], constants: {}, texts: differences(process, ProcessState.now) }
        without_warnings { ObjectSpace.each_object(Module) { |mod| look_at_module(mod, found) } }
        changed = @objects.reject { |object, sum| Native.object_sum(object) == sum || @ignored.key?(object) }
        found.merge(changed: changed.keys)
      end

      def look
        @modules = {}.compare_by_identity # module => what `seen` tells of it
        @objects = {}.compare_by_identity # object => sum
        ObjectSpace.each_object(Module) { |mod| @modules[mod] = seen(mod) }
        ObjectSpace.each_object { |object| @objects[object] = Native.object_sum(object) }
        [self, @objects, @modules, *WatchedCalls.own_objects].each { |own| @objects.delete(own) }
      end

      # Ruby warns of deprecated constants when their values are asked for.
      def without_warnings
        before = Warning[:deprecated]
        Warning[:deprecated] = false
        yield
      ensure
        Warning[:deprecated] = before
      end

      # Constants that are autoloads after the gem was loaded. A lazy gem can't have such a constant: Ruby removes a
      # constant if loading the file of its autoload does not define the constant.
      def autoloads(constants)
        constants.filter_map do |mod, names|
          lazy = names.select { |name| ask(mod, :autoload?, name, false) }
          "adds autoloads of #{few(lazy)} to #{described(mod)}" if lazy.any?
        end
      end

      def differences(before, now) = now.filter_map { |name, value| "changes #{name}" if value != before[name] }

      def look_at_module(mod, found)
        before = @modules[mod]
        now = seen(mod)
        if before.nil?
          found[:modules] << mod
          object = object_before(mod) or return
          names = now.first.keys
          found[:texts] << "defines #{few(names)} for #{described(object)}" if names.any?
          found[:texts] << "extends #{described(object)}" if extended?(mod, object)
        else
          added = now.last.keys - before.last.keys
          found[:constants][mod] = added if added.any?
          found[:texts].concat(differences_of_module(mod, before, now))
        end
      end

      # @return methods (name => hash of the definition and its visibility; nil: it is undefined there), ancestors,
      #   constants (name => value)
      def seen(mod)
        methods = ask(mod, :undefined_instance_methods).to_h { |name| [name, nil] }
        KINDS_OF_METHODS.each do |kind|
          ask(mod, kind, false).each { |name| methods[name] = [definition(mod, name), kind].hash }
        end
        [methods, ask(mod, :ancestors).map(&:__id__),
         ask(mod, :constants, false).to_h { |name| [name, value(mod, name)] }]
      rescue NameError, TypeError, ArgumentError
        [{}, [], {}] # it is not complete
      end

      def value(mod, name)
        loaded = !ask(mod, :autoload?, name, false) && ask(mod, :const_defined?, name, false)
        loaded ? ask(mod, :const_get, name, false) : NOT_LOADED
      end

      def definition(mod, name)
        ask(mod, :instance_method, name).hash
      rescue NameError
        0 # undefined meanwhile
      end

      # The older object to which a new singleton class belongs.
      # @param mod a new module
      def object_before(mod)
        return unless ask(mod, :singleton_class?)

        object = mod.attached_object
        object if @objects.key?(object)
      end

      # Was the object extended by modules? A class always has a singleton class. So the singleton class of an older
      # class never appears as new.
      def extended?(mod, object)
        !(Class === object) && ask(mod, :ancestors).drop(1) != ask(CLASS.bind_call(object), :ancestors)
      end

      def differences_of_module(mod, before, now)
        changed = now[0].reject { |name, definition| before[0].fetch(name, false) == definition }
        names = changed.compact.keys
        lost = changed.keys - names + (before[0].keys - now[0].keys) + (before[2].keys - now[2].keys)
        replaced = now[2].reject { |name, value| same?(before[2].fetch(name, NOT_LOADED), value) }.keys
        [("defines #{few(names)} in #{described(mod)}" if names.any?),
         ("gives #{few(replaced)} of #{described(mod)} another value" if replaced.any?),
         ("removes #{few(lost)} of #{described(mod)}" if lost.any?),
         ("includes or prepends modules in #{described(mod)}" if before[1] != now[1])].compact
      end

      # Is it the same value of a constant? Loading an autoload is no change.
      def same?(before, now) = NOT_LOADED.equal?(before) || SAME.bind_call(before, now)

      # Older classes that have new subclasses. A library may ask its classes for their subclasses.
      def subclasses(modules)
        new = {}.compare_by_identity
        modules.each { |mod| new[mod] = true }
        above = modules.filter_map { |mod| mod.superclass if Class === mod && !ask(mod, :singleton_class?) }
        above.reject { |mod| new[mod] || plain_superclass?(mod) }.uniq.map { |mod| "subclasses #{described(mod)}" }
      end

      # May a lazy gem inherit from the class? Yes if the class does not note its subclasses, and if it is an exception,
      # one of Ruby's own classes or one of the standard library.
      def plain_superclass?(mod)
        return false unless PLAIN_INHERITED.include?(METHOD.bind_call(mod, :inherited).owner.inspect)
        return true if mod <= Exception

        name = ask(mod, :name) or return false
        file = Object.const_source_location(name)&.first
        file.nil? || !file.start_with?("/") || file.start_with?(RbConfig::CONFIG["rubylibdir"])
      rescue NameError
        false
      end

      def values(changed)
        kept = changed.any? ? results : []
        counted = changed.reject do |object|
          mod = Module === object ? object : CLASS.bind_call(object)
          ask(mod, :name).to_s.match?(KEEPS_RESULTS) || kept.any? { |value| value.equal?(object) }
        end
        more = counted.size - NAMED
        counted.first(NAMED).map { |object| "changes #{described(object)}" } +
          (more.positive? ? ["changes #{more} more objects"] : [])
      end

      # Values of the variables of RubyGems' and Bundler's modules.
      def results
        @modules.each_key.select { |mod| ask(mod, :name).to_s.match?(KEEPS_RESULTS) }.flat_map do |mod|
          ask(mod, :instance_variables).map { |name| ask(mod, :instance_variable_get, name) } +
            ask(mod, :class_variables, false).map { |name| ask(mod, :class_variable_get, name) }
        end
      end

      # Empty files, and extensions that define nothing.
      def load_nothing(folder)
        2.times do |i|
          file = File.join(folder, "empty_#{i}.rb")
          File.write(file, "")
          require file
          require EMPTY_EXTENSIONS[i]
        rescue LoadError
          nil # this Ruby has them in itself
        end
      end

      def reachable?(mod)
        name = ask(mod, :name) or return false
        Object.const_get(name).equal?(mod)
      rescue NameError
        false
      end

      def described(object)
        return described_module(object) if Module === object

        kind = ask(CLASS.bind_call(object), :name) || "object of a nameless class"
        [owner_of(object), "#{kind.match?(/\A[AEIOaeio]/) ? "an" : "a"} #{kind}"].compact.join(", ")
      end

      def described_module(mod)
        name = ask(mod, :name)
        return name if name
        return "a nameless module" unless ask(mod, :singleton_class?)

        object = mod.attached_object
        Module === object ? "#{described_module(object)} itself" : "one #{ask(CLASS.bind_call(object), :name)}"
      end

      # The variable of a module whose value is the object.
      def owner_of(object)
        @modules.each_key do |mod|
          name = ask(mod, :name) or next
          variable = ask(mod, :instance_variables).find { |it| ask(mod, :instance_variable_get, it).equal?(object) }
          variable ||= ask(mod, :class_variables, false).find { |it| ask(mod, :class_variable_get, it).equal?(object) }
          return "#{variable} of #{name}" if variable
        rescue NameError, TypeError
          next
        end
        nil
      end

      def few(names)
        more = names.size - NAMED
        names.first(NAMED).join(", ") + (more.positive? ? " and #{more} more" : "")
      end
    end
  end
end
