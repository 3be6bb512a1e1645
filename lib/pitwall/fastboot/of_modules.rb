# frozen_string_literal: true

module Pitwall
  module Fastboot
    # Calls Ruby's own methods of modules, such as Module#constants. A module of the program may override such a method:
    # in ActiveSupport's deprecated constants, the overriding method prints a warning.
    # @api private
    module OfModules
      METHODS = %i[ancestors autoload autoload? class_variable_get class_variables const_defined? const_get
                   const_source_location constants instance_method instance_methods instance_variable_get
                   instance_variables name private_instance_methods private_method_defined? protected_instance_methods
                   public_instance_methods singleton_class singleton_class?].to_h do |name|
        [name, Module.instance_method(name)]
      end
      since_3_2 = :undefined_instance_methods
      METHODS[since_3_2] = Module.instance_method(since_3_2) if Module.method_defined?(since_3_2)
      METHODS.freeze
      private_constant :METHODS

      module_function

      # Calls Ruby's own method of the module.
      #: (Module, Symbol, *untyped) -> untyped
      def ask(mod, method, *arguments) = METHODS.fetch(method).bind_call(mod, *arguments)
    end
  end
end
