# frozen_string_literal: true

module Pitwall
  module Collect
    # Converts the tracer's options to the Strings that its collector reads.
    # @api private
    module TraceOptions
      FLAGS = %i[cpu objects bytes].freeze
      NUMBERS = %i[depth gc_memory nodes].freeze
      LISTS = %i[path class only_under].freeze
      GC = %w[as-is off defer].freeze

      # { cpu: false, path: ["app/*"] } → {"cpu" => "0", "path" => "app/*"}
      # @raise [UsageError]
      #: (Hash[Symbol, untyped]) -> Hash[String, String]
      def self.check(options)
        options.to_h { |name, value| [name.to_s, text(name, value)] }
      end

      def self.text(name, value)
        case name
        when *FLAGS then value ? "1" : "0"
        when *NUMBERS then number(name, value)
        when *LISTS then Array(value).map(&:to_s).join("\n")
        when :gc then gc(value)
        else raise UsageError, "unknown option #{name}: known are #{(FLAGS + LISTS + NUMBERS + [:gc]).join(", ")}"
        end
      end
      private_class_method :text

      def self.gc(value)
        return value.to_s if GC.include?(value.to_s)

        raise UsageError, "gc #{value.inspect}: choose #{GC.join(", ")}"
      end
      private_class_method :gc

      def self.number(name, value)
        return value.to_s if value.is_a?(Integer) && value.positive?

        raise UsageError, "#{name} #{value.inspect}: must be a whole number, 1 or more"
      end
      private_class_method :number
    end
  end
end
