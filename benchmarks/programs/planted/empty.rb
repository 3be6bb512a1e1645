# frozen_string_literal: true

# Nothing, as a block and as code: what is measured is the loop around it.
#
#   ruby benchmarks/programs/planted/empty.rb
#
# Runs under pitwall bench, or after ruby -I … -r benchmark/ips. Prints ns an iteration.
report = Benchmark.ips(quiet: true) do |x|
  x.config(time: Float(ENV.fetch("EMPTY_SECONDS", "1")), warmup: 0.3)
  x.report("block") {}
  x.report("code", "")
end

puts(report.entries.map { |entry| "#{entry.label} #{1e9 / entry.ips}" }) if report.respond_to?(:entries)
