# Runs a block once and prints a row: what RubyVM.stat counted and its CPU time, in all and for each definition.
# Under `pitwall bench` and `pitwall compare` the block is the case that they measure.
module Row
  NOT_COUNTED = "not counted by this Ruby".freeze

  def self.of(name, thing, times, &block)
    return Pitwall.bench(name) { |x| x.report(name, &block) } if measured?

    serial = RubyVM.stat[:class_serial]
    from = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID)
    block.call
    seconds = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) - from
    changed = serial ? RubyVM.stat[:class_serial] - serial : NOT_COUNTED
    puts "#{name}, #{times} #{thing}s",
         "| Ruby | class_serial | CPU time | for each #{thing} |",
         "|---|---:|---:|---:|",
         format("| %<ruby>s | %<changed>s | %<ms>.2f ms | %<us>.2f µs |",
                ruby: RUBY_VERSION, changed: changed, ms: seconds * 1e3, us: seconds * 1e6 / times)
  end

  # Does Pitwall run this file as a benchmark?
  def self.measured? = defined?(Pitwall::Bench) ? true : false
end
