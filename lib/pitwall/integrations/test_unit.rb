# frozen_string_literal: true

require "test/unit/testcase" unless defined?(Test::Unit::TestCase)
require_relative "../../pitwall" unless defined?(Pitwall::Collect::Session)

# Each test has its name as a label while the process is recorded: `pitwall report --view tests`, doc/tests.md.
Pitwall::Collect::Tests.install(Pitwall::Collect::Tests::Test)
