# frozen_string_literal: true

# Required by a process whose boot is measured (RUBYOPT=-r). It starts the accelerator that BENCHMARKS_BOOT names, so
# that no file of the application changes. At the end it writes "FEATURES KB" to the descriptor in BENCHMARKS_RSS_FD:
# the number of loaded features, and the largest resident size. Other processes that the application starts write none.
if (descriptor = ENV["BENCHMARKS_RSS_FD"])
  require_relative "print_peak_rss"
  # It runs first: handlers run in reverse order.
  at_exit { IO.for_fd(Integer(descriptor), autoclose: false).syswrite("#{$LOADED_FEATURES.size} ") }
end

case ENV["BENCHMARKS_BOOT"]
when "pitwall"
  require_relative "../../lib/pitwall/fastboot"
when "bootsnap" # is a gem of the bundle
  require "bundler/setup"
  require "bootsnap/setup"
end
