# frozen_string_literal: true

require "erb"
require "json"

# Ordinary Ruby of every kind, over and over: the load under which a profiler's signal finds the VM in every state a
# program puts it in, half-pushed frames included. It is the stress load of the sampler's tests: it must end by
# itself, with the same answers at every pass.
#
#   ruby benchmarks/programs/mixed.rb [SECONDS]     # default 10; prints how many passes it made
module Programs
  class Mixed
    class Mistake < StandardError; end

    Point = Struct.new(:x, :y, :label) do
      def +(other) = self.class.new(x + other.x, y + other.y, label)
    end
    private_constant :Point

    PAGE = <<~HTML
      <h1><%= title %></h1>
      <% rows.each do |row| %><tr><td><%= row[:id] %></td><td><%= ERB::Util.h(row[:name]) %></td></tr><% end %>
    HTML
    WORDS = %w[interval stack a frame weight sampling leaf root of the clock tick ring drain tree].freeze
    private_constant :PAGE, :WORDS

    20.times { |n| define_method(:"generated_#{n}") { |value| value + n } }

    #: (Float) -> Integer  passes made
    def run(seconds)
      finish = now + seconds
      passes = 0
      expected = nil
      while now < finish
        answer = pass
        expected ||= answer
        raise "pass #{passes} answered #{answer}, the first #{expected}" unless answer == expected

        passes += 1
      end
      passes
    end

    #: () -> Integer  a checksum, the same each time
    def pass
      json + erb + regexps + sorting + exceptions + generated + structs + formats + enumerators + hashes
    end

    private

    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

    def rows
      Array.new(30) { |i| { id: i, name: "#{WORDS[i % WORDS.size]} <#{i}>", tags: WORDS.first(i % 5), ratio: i / 7.0 } }
    end

    def json = JSON.parse(JSON.generate(rows), symbolize_names: true).sum { |row| row[:id] + row[:tags].size }
    def erb = ERB.new(PAGE).result_with_hash(title: "mixed", rows: rows).size

    def regexps
      text = WORDS.join(" ") * 20
      text.scan(/(\w)(\w+)/).size + text.gsub(/[aeiou]/) { |vowel| vowel.upcase }.count("A") + text.split(/\s+/).size
    end

    def sorting
      words = WORDS * 20
      words.sort_by(&:size).first.size + words.max_by(&:hash).size.clamp(1, 1) + words.map(&:to_sym).uniq.size +
        words.sort { |a, b| b <=> a }.first.size
    end

    def exceptions
      Array.new(50) do |i|
        Integer(i.even? ? i.to_s : "not #{i}")
      rescue ArgumentError
        begin
          raise Mistake, "number #{i}"
        rescue Mistake => e
          e.backtrace.size.clamp(1, 1)
        ensure
          Thread.current[:mixed] = i
        end
      end.sum + (catch(:found) { 100.times { |i| throw :found, i if i == 60 } })
    end

    def generated
      one_off = Class.new { define_method(:call) { |value| value * 2 } }.new
      Array.new(20) { |n| public_send(:"generated_#{n}", n) + one_off.call(n) }.sum
    end

    def structs
      points = Array.new(50) { |i| Point.new(i, -i, "p#{i}") }
      points.reduce(:+).x + points.map(&:to_a).flatten.size + points.group_by { |p| p.x % 3 }.size
    end

    def formats
      Array.new(50) { |i| format("%05.2f|%-8s|%x", i / 3.0, WORDS[i % 5], i) }.join.size + (7**300).to_s.size
    end

    def enumerators
      fiber = Fiber.new { 10.times { |i| Fiber.yield(i) } && 0 }
      numbers = Enumerator.new { |y| 20.times { |i| y << i } }
      Array.new(10) { fiber.resume }.sum + numbers.next + numbers.lazy.map { |n| n * 3 }.select(&:even?).first(5).sum
    end

    def hashes
      merged = rows.each_with_object({}) do |row, all|
        all.merge!(row.slice(:id, :name)) { |_key, old, new| old.to_s + new.to_s }
      end
      merged[:name].size + rows.to_h { |row| [row[:name], row] }.transform_values { |row| row[:id] }.values.sum
    end
  end
end

if $PROGRAM_NAME == __FILE__
  passes = Programs::Mixed.new.run(Float(ARGV.fetch(0, "10")))
  puts "#{passes} passes"
end
