# frozen_string_literal: true

# A program that makes calls of every kind that Ruby has, in an order that depends on its seed. Each definition and each
# block is on a line of its own, so an oracle can name it by the line.
module RandomCalls
  SOURCE = <<~'RUBY'
    class Away < StandardError
    end

    module Loudly
      refine String do
        def loudly
          upcase + "!"
        end
      end
    end
    using Loudly

    Point = Struct.new(:x, :y)

    class Player
      include Comparable
      attr_accessor :score
      attr_reader :random

      def initialize(seed)
        @random = Random.new(seed)
        @score = 0
        @left = 400
      end

      def <=>(other)
        score <=> other.score
      end

      def method_missing(name, *args)
        return super unless name.start_with?("any_")

        play(args.first)
      end

      def respond_to_missing?(*)
        true
      end

      define_method(:defined) do |depth|
        play(depth)
      end

      WAYS = %i[deeper twice mapped rescued ensured thrown fibre enumerated threaded defined any_thing lambda_return
                proc_return broken retried sorted symbolic evaluated refined struct compared killed abandoned in_class
                hashed nested_raise].freeze

      def play(depth)
        @score += 1
        return depth if depth >= 7 || (@left -= 1) < 0

        public_send(WAYS[@random.rand(WAYS.size)], depth + 1)
      end

      def deeper(depth)
        play(depth)
        play(depth)
      end

      def twice(depth)
        2.times do
          play(depth)
        end
      end

      def mapped(depth)
        [1, 2].map do |n|
          [n].each_with_index do |m, i|
            play(depth)
          end
        end
      end

      def rescued(depth)
        raise Away, "x" if @random.rand(2).zero?

        play(depth)
      rescue Away
        play(depth)
      end

      def nested_raise(depth)
        [1].each do
          [2].map do
            play(depth)
            raise Away
          end
        end
      rescue Away => error
        error.message.size
      end

      def ensured(depth)
        return play(depth)
      ensure
        play(depth)
      end

      def thrown(depth)
        catch(:away) do
          [1].each do
            play(depth)
            throw :away
          end
        end
      end

      def fibre(depth)
        fiber = Fiber.new do |x|
          play(depth)
          Fiber.yield(x)
          play(depth)
        end
        fiber.resume(1)
        play(depth)
        fiber.resume(2)
      end

      def enumerated(depth)
        enumerator = Enumerator.new do |y|
          y << play(depth)
          y << play(depth)
        end
        enumerator.next
        enumerator.next
        begin
          enumerator.next
        rescue StopIteration
          play(depth)
        end
      end

      def abandoned(depth)
        enumerator = Enumerator.new do |y|
          y << play(depth)
          y << play(depth)
        end
        enumerator.next
      end

      def threaded(depth)
        Thread.new do
          play(depth)
        end.join
      end

      def killed(depth)
        Thread.new do
          [1].each do
            play(depth)
            Thread.current.kill
          end
        end.join
      end

      def lambda_return(depth)
        l = lambda do |x|
          return x if x > 3

          play(depth)
        end
        l.call(2)
        l.(5)
      end

      def proc_return(depth)
        pr = proc do
          return play(depth)
        end
        pr.call
      end

      def broken(depth)
        [1, 2, 3].each do |n|
          play(depth)
          break if n > 1
        end
      end

      def retried(depth)
        tries = 0
        begin
          tries += 1
          play(depth)
          raise Away if tries < 3
        rescue Away
          retry
        end
      end

      def sorted(depth)
        [3, 1, 2].sort_by do |x|
          -x
        end.inject do |a, b|
          play(depth) if a > b
          b
        end
      end

      def symbolic(depth)
        [1, 2].map(&:to_s).each(&:size)
        [depth].map(&method(:play))
      end

      def evaluated(depth)
        instance_eval do
          play(depth)
        end
        eval("play(depth)")
      end

      def refined(depth)
        "a".loudly.tap do
          play(depth)
        end
      end

      def struct(depth)
        point = Point.new(1, 2)
        point.x = point.y + 1
        point.to_a.sum.then do
          play(depth)
        end
      end

      def compared(depth)
        self > Player.new(1) ? play(depth) : depth
      end

      def in_class(depth)
        player = self
        Class.new do
          define_method(:go) do
            player.play(depth)
          end
        end.new.go
      end

      def hashed(depth)
        hash = Hash.new do |h, k|
          h[k] = play(k)
        end
        hash[depth]
        { a: 1 }.each_pair do |k, v|
          play(depth)
        end
      end
    end

    def work(seed)
      Player.new(seed).play(0)
    end
  RUBY
end
