# frozen_string_literal: true

module Pitwall
  module Bench
    # What the block of `Pitwall.bench` gets.
    class Sweep < Job
      GROWTH_NEEDS = 4

      attr_reader :before_block

      def initialize(*)
        super
        @params = {}
      end

      # Every case is measured at each value (an Array or Range is its elements); several params make their product.
      def param(name, *values)
        values = values.first.to_a if values.size == 1 && (values.first.is_a?(Array) || values.first.is_a?(Range))
        name = name.to_sym
        raise Misuse, "x.param #{name.inspect}: a name such as :n" unless Work.local?(name)
        raise Misuse, "x.param #{name.inspect} needs values: x.param :#{name}, 10, 100, 1000" if values.empty?
        raise Misuse, "x.param #{name.inspect} is there twice: give all values at once" if @params.key?(name)

        @params[name] = values.uniq
        self
      end

      # How time grows with this param is the question. Without it: the first numeric one with at least four values.
      def growth(name)
        @growth = name.to_sym
        self
      end

      # Once a process, before the first call; its value is the state that cases get. May take the params.
      def setup(&block)
        @setup = block
        self
      end

      # Before each iteration, outside the clock: what it makes of the state is what that iteration gets.
      def before(&block)
        @before_block = block
        self
      end

      # Once a process, after the last call.
      def after(&block)
        @after = block
        self
      end

      def close
        super
        raise Misuse, "x.growth #{@growth.inspect}: add x.param #{@growth.inspect}, 10, 100, 1000, 10_000" if @growth && !@params.key?(@growth)

        along = @growth || @params.keys.find { |name| @params[name].size >= GROWTH_NEEDS && @params[name].all?(Numeric) }
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

      # A value in a label and in the list: in one piece, and not long.
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
            Case.new(self, [label, *params.map { |name, value| "#{name}=#{Sweep.show(value)}" }].reject(&:empty?).join(" "), body, params)
          end
        end
      end

      def invoke(block, argument, params)
        words = Work.words(block, params).to_h { |name| [name, params[name]] }
        arguments = Work.positional?(block) ? [argument] : []
        words.empty? ? block.call(*arguments) : block.call(*arguments, **words)
      end
    end
  end
end
