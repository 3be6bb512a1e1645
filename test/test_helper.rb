# frozen_string_literal: true

# Runs with or without Bundler: `ruby test/cli/cli_test.rb` and `rake test` see the same gems.
require_relative "../script/checkout"
Checkout.use_vendored_gems unless defined?(Bundler)
$LOAD_PATH.unshift File.join(Checkout::ROOT, "lib")

require "minitest/autorun"
