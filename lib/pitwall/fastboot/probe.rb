# frozen_string_literal: true

require_relative "of_modules"

module Pitwall
  # What a boot has defined, for `pitwall boot cache verify --boot`: one line for each feature, entry of $LOAD_PATH,
  # constant and method. Written to PITWALL_BOOT_PROBE when the process that the command started ends. For `pitwall boot
  # cache lazy` there are more files. ".woken" has the lazy gems that the boot has used. ".values" has the values of
  # constants and of modules' variables. (Some values differ in any two boots, such as times and random numbers.)
  # ".memory" has the process's peak memory in MiB.
  # @api private
  module BootProbe
    OWN = %r{Pitwall|/pitwall/|/pitwall_boot_|pitwall_\w+_before}
    CLASS = Kernel.instance_method(:class)
    PLAIN = [String, Symbol, Integer, Float, NilClass, TrueClass, FalseClass, Regexp].freeze
    DEPTH = 4 # of objects in a value
    LONGEST = 500 # characters of a value
    private_constant :OWN, :CLASS, :PLAIN, :DEPTH, :LONGEST

    extend Fastboot::OfModules

    module_function

    #: () -> Array[String]
    def lines
      found = $LOADED_FEATURES.map { |path| "feature #{path}" } + $LOAD_PATH.map { |path| "load_path #{path}" }
      ObjectSpace.each_object(Module) { |mod| found.concat(definitions(mod)) }
      found.map { |line| line.b.tr("\n", " ").gsub(/0x\h+/n, "0x") }.grep_v(OWN).uniq.sort
    end

    def definitions(mod)
      name = ask(mod, :name) or return []
      methods = { "#" => mod, "." => ask(mod, :singleton_class) }.flat_map do |sign, owner|
        all = ask(owner, :instance_methods, false) + ask(owner, :private_instance_methods, false)
        all.map { |method| "method #{name}#{sign}#{method} #{arity(owner, method)}" }
      end
      ask(mod, :constants, false).map { |constant| "constant #{name}::#{constant}" } + methods
    rescue NameError, TypeError, ArgumentError
      [] # a module that undefines one meanwhile
    end

    # The arity of the program's own method, where the accelerator has replaced it.
    def arity(owner, name)
      found = ask(owner, :instance_method, name)
      before = name.end_with?("!") ? "pitwall_#{name[0..-2]}_before!" : "pitwall_#{name}_before"
      found = ask(owner, :instance_method, before) if ask(owner, :private_method_defined?, before, false)
      found.arity
    end

    # @return "name value" of each constant and variable of modules
    #: () -> Array[String]
    def values
      found = []
      ObjectSpace.each_object(Module) { |mod| found.concat(values_of(mod)) }
      found.map { |line| line.b.tr("\n", " ")[0, LONGEST] }.grep_v(OWN).uniq.sort
    end

    def values_of(mod)
      name = ask(mod, :name) or return []
      constants = ask(mod, :constants, false).reject { |constant| ask(mod, :autoload?, constant, false) }
      found = constants.map { |constant| "#{name}::#{constant} #{text(ask(mod, :const_get, constant, false))}" }
      found += ask(mod, :instance_variables).map { |it| "#{name} #{it} #{text(ask(mod, :instance_variable_get, it))}" }
      found + ask(mod, :class_variables, false).map { |it| "#{name} #{it} #{text(ask(mod, :class_variable_get, it))}" }
    rescue NameError, TypeError, ArgumentError
      []
    end

    # A plain value as Ruby writes it. Of another object only its class.
    def text(value, depth = DEPTH)
      return ask(value, :name).to_s if Module === value
      return value.inspect if PLAIN.include?(kind = CLASS.bind_call(value))
      return kind.to_s if depth.zero?

      case value
      when Array then "[#{value.map { |each| text(each, depth - 1) }.join(", ")}]" if kind == Array
      when Hash then "{#{value.map { |pair| text(pair, depth - 1) }.join(", ")}}" if kind == Hash
      end || kind.to_s
    end

    # @return [Integer] this process's peak memory, in MiB; 0: unknown
    #: () -> Integer
    def peak_memory
      File.binread("/proc/self/status")[/^VmHWM:\s+(\d+) kB/n, 1].to_i / 1024
    rescue SystemCallError
      0
    end

    #: (String) -> void
    def write(file)
      File.write("#{file}.memory", peak_memory.to_s)
      lazy = Fastboot.lazy_gems if defined?(Fastboot::LazyGems) && Fastboot.lazy_gems.is_a?(Fastboot::LazyGems)
      File.write("#{file}.woken", lazy.woken.map { |name| "#{name}\n" }.join) if lazy
      lazy&.load_all
      put(file, lines)
      put("#{file}.values", values) if ENV["PITWALL_BOOT_PROBE_VALUES"]
    end

    def put(file, lines) = File.binwrite(file, lines.map { |line| "#{line}\n" }.join)
  end
  private_constant :BootProbe

  if ENV["PITWALL_BOOT_PROBE_PARENT"] == Process.ppid.to_s
    pid = Process.pid
    at_exit { BootProbe.write(ENV.fetch("PITWALL_BOOT_PROBE")) if pid == Process.pid }
  end
end
