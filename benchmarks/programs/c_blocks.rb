# frozen_string_literal: true

# C functions that call Ruby code: blocks, comparisons, hash functions, conversions, missing methods, exceptions and
# throws through C code.
#
#   ruby benchmarks/programs/c_blocks.rb [AMOUNT]     # AMOUNT: turns (default 100)
module Programs
  class CBlocks
    class Key
      attr_reader :value

      def initialize(value) = @value = value
      def hash = @value % 16
      def eql?(other) = @value == other.value
      def <=>(other) = @value <=> other.value
      def to_s = "key #{@value}"
      def to_str = to_s
      def coerce(other) = [other, @value]
      def respond_to_missing?(name, all = false) = name.to_s.end_with?("_it") || super
      def method_missing(name, *arguments) = name.to_s.end_with?("_it") ? arguments.size + @value : super
      def marshal_dump = @value
      def marshal_load(value) = @value = value
    end
    private_constant :Key

    define_method(:defined_by_block) { |value| [value].each { |v| return v + 1 if v } }

    # Returns a sum, the same for the same amount.
    #: (Integer) -> Integer
    def run(amount)
      sum = 0
      amount.times { |i| sum += blocks + keys(i) + texts + jumps + dumps + missing(i) }
      sum
    end

    private

    def blocks
      numbers = (1..60).to_a
      numbers.sort { |a, b| b <=> a }.first + numbers.inject { |a, b| a + b } + numbers.each_slice(7).sum(&:first) +
        numbers.each_with_index.sum { |n, i| n * i } + numbers.partition(&:even?).first.size +
        numbers.sum { |n| defined_by_block(n) }
    end

    def keys(turn)
      keys = Array.new(40) { |i| Key.new((turn + i) % 97) }
      keys.to_h { |key| [key, key.value] }.size + keys.sort.first.value + keys.max.value + keys.uniq.size +
        keys.sum { |key| 1 + key }
    end

    def texts
      text = "the quick brown fox jumps over the lazy dog " * 5
      text.gsub(/\w+/) { |word| word.capitalize }.size + text.each_char.count { |c| c == "o" } + "#{Key.new(1)}".size +
        ["a", Key.new(2)].join(",").size
    end

    def jumps
      caught = catch(:found) { 20.times { |i| (1..5).each { |j| throw :found, i + j if i * j > 30 } } }
      raised = Array.new(10) do |i|
        [i].map { |n| Integer(n.even? ? n.to_s : "no") }.first
      rescue ArgumentError
        -1
      end
      caught + raised.sum
    end

    def dumps = Marshal.load(Marshal.dump(Array.new(10) { |i| Key.new(i) })).sum(&:value)
    def missing(turn) = Array.new(20) { |i| Key.new(i).count_it(turn) + Key.new(i).public_send(:do_it) }.sum
  end
end

puts Programs::CBlocks.new.run(Integer(ARGV.fetch(0, "100"))) if $PROGRAM_NAME == __FILE__
