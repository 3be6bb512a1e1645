# frozen_string_literal: true

module Pitwall
  # What a boot has defined, for `pitwall boot cache verify --boot`: one line for each feature, entry of $LOAD_PATH,
  # constant and method. Written to PITWALL_BOOT_PROBE when the process that the command started ends.
  # @api private
  module BootProbe
    OWN = %r{Pitwall|/pitwall/|pitwall_\w+_before}
    NAME = Module.instance_method(:name)
    private_constant :OWN, :NAME

    module_function

    #: () -> Array[String]
    def lines
      found = $LOADED_FEATURES.map { |path| "feature #{path}" } + $LOAD_PATH.map { |path| "load_path #{path}" }
      ObjectSpace.each_object(Module) { |mod| found.concat(definitions(mod)) }
      found.map { |line| line.b.tr("\n", " ").gsub(/0x\h+/n, "0x") }.grep_v(OWN).uniq.sort
    end

    def definitions(mod)
      name = NAME.bind_call(mod) or return []
      methods = { "#" => mod, "." => mod.singleton_class }.flat_map do |sign, owner|
        all = owner.instance_methods(false) + owner.private_instance_methods(false)
        all.map { |method| "method #{name}#{sign}#{method} #{arity(owner, method)}" }
      end
      mod.constants(false).map { |constant| "constant #{name}::#{constant}" } + methods
    rescue NameError, TypeError, ArgumentError
      [] # a module that overrides these methods, or undefines one meanwhile
    end

    # The arity of the program's own method, where the accelerator has replaced it.
    def arity(owner, name)
      found = owner.instance_method(name)
      before = name.end_with?("!") ? "pitwall_#{name[0..-2]}_before!" : "pitwall_#{name}_before"
      found = owner.instance_method(before) if owner.private_method_defined?(before, false)
      found.arity
    end

    #: (String) -> void
    def write(file)
      File.binwrite(file, lines.map { |line| "#{line}\n" }.join)
    end
  end
  private_constant :BootProbe

  if ENV["PITWALL_BOOT_PROBE_PARENT"] == Process.ppid.to_s
    pid = Process.pid
    at_exit { BootProbe.write(ENV.fetch("PITWALL_BOOT_PROBE")) if pid == Process.pid }
  end
end
