# frozen_string_literal: true

# Threads that come and go, wait for one another and allocate.
#
#   ruby benchmarks/programs/workers.rb [AMOUNT]     # AMOUNT: turns (default 20)
module Programs
  class Workers
    # Returns a sum, the same for the same amount.
    #: (Integer) -> Integer
    def run(amount)
      sum = 0
      amount.times { sum += by_queue + short_lived }
      sum
    end

    private

    def by_queue
      jobs = Queue.new
      done = Queue.new
      threads = Array.new(4) { Thread.new { while (job = jobs.pop) do done << work(job) end } }
      40.times { |i| jobs << i + 1 }
      jobs.close
      threads.each(&:join)
      Array.new(done.size) { done.pop }.sum
    end

    def short_lived = Array.new(10) { |i| Thread.new { work(i) } }.sum(&:value)

    def work(value) = Array.new(300) { |i| "#{value} #{i}" }.group_by(&:size).sum { |size, texts| size * texts.size }
  end
end

puts Programs::Workers.new.run(Integer(ARGV.fetch(0, "20"))) if $PROGRAM_NAME == __FILE__
