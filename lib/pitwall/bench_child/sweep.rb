# frozen_string_literal: true

module Pitwall
  module Bench
    # The argument of the block of `Pitwall.bench`.
    class Sweep < Job
      # Number of values from which a numeric param is analysed for growth.
      GROWTH_VALUES = 4

      attr_reader :before_block

      def initialize(*)
        super
        @params = {}
      end

      # Measures every case at each value. An Array or a Range stands for its elements. Several
      # params make their product.
      def param(name, *values)
        values = values.first.to_a if values.size == 1 && (values.first.is_a?(Array) || values.first.is_a?(Range))
        name = name.to_sym
        raise Misuse, "x.param #{name.inspect}: a name such as :n" unless Work.local_name?(name)
        raise Misuse, "x.param #{name.inspect} needs values: x.param :#{name}, 10, 100, 1000" if values.empty?
        raise Misuse, "x.param #{name.inspect} is there twice: give all values at once" if @params.key?(name)

        @params[name] = values.uniq
        self
      end

      # Names the param along which the growth of time is analysed. Default: the first numeric param with
      # at least four values.
      def growth(name)
        @growth = name.to_sym
        self
      end

      # Runs once a process, before the first call. Its value is the state for the cases. It may take the params.
      def setup(&block)
        @setup = block
        self
      end

      # Runs before each iteration, outside the clock. It gets the state; its value is the state for that iteration.
      def before(&block)
        @before_block = block
        self
      end

      # Runs once a process, after the last call.
      def after(&block)
        @after = block
        self
      end

      def close
        super
        if @growth && !@params.key?(@growth)
          raise Misuse, "x.growth #{@growth.inspect}: add x.param #{@growth.inspect}, 10, 100, 1000, 10_000"
        end

        along = @growth || @params.find { |_, values| values.size >= GROWTH_VALUES && values.all?(Numeric) }&.first
        @flags |= ["growth", "growth:#{along}"] if along
        @flags |= ["before"] if @before_block
      end

      def passes_times?
        false
      end

      def set_up(params)
        @setup ? invoke(@setup, params, params) : (params unless params.empty?)
      end

      def tear_down(state, params)
        invoke(@after, state, params) if @after
      end

      # A value as labels and the list of cases show it: at most 40 characters, without spaces, commas and tabs.
      def self.show(value)
        text = value.is_a?(String) || value.is_a?(Symbol) || value.is_a?(Numeric) ? value.to_s : value.inspect
        text.tr(",\t\n ", ";___")[0, 40]
      end

      private

      def known
        super | %w[param setup before after growth]
      end

      def expand
        names = @params.keys
        points = names.empty? ? [[]] : @params[names.first].product(*names.drop(1).map { |name| @params[name] })
        @reports.flat_map do |label, body|
          points.map do |values|
            params = names.zip(values).to_h
            words = [label, *params.map { |name, value| "#{name}=#{Sweep.show(value)}" }]
            Case.new(self, words.reject(&:empty?).join(" "), body, params)
          end
        end
      end

      def invoke(block, argument, params)
        keywords = Work.keywords(block, params).to_h { |name| [name, params[name]] }
        arguments = Work.positional?(block) ? [argument] : []
        keywords.empty? ? block.call(*arguments) : block.call(*arguments, **keywords)
      end
    end
  end
end
