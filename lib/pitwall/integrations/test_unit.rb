# frozen_string_literal: true

require "test/unit/testcase" unless defined?(Test::Unit::TestCase)
require_relative "../../pitwall" unless defined?(Pitwall::Collect::Session)

# While the process is recorded, each test's name is a label: `pitwall report --view tests` (doc/tests.md).
Pitwall::Collect::Tests.install(Pitwall::Collect::Tests::Test)
