# frozen_string_literal: true

# Runs with or without Bundler: `ruby test/cli/cli_test.rb` and `rake test` see the same gems.
require_relative "../script/checkout"
Checkout.use_test_gems unless defined?(Bundler)
$LOAD_PATH.unshift File.join(Checkout::ROOT, "lib")

# A shell that starts tests in the background has them, and the programs they start, ignore Ctrl-C.
%w[INT QUIT].each { |name| trap(name, "DEFAULT") }

require "minitest/autorun"
# Else minitest 5 loads the plugins of a minitest 6 beside it, and those load that.
ARGV.push("--no-plugins") unless ARGV.include?("--no-plugins")
