# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/native_unit"

# Runs the unit tests in C of test/native/units, each in a process of its own. For example,
# RingUnitTest#test_peeking_leaves_the_record_with_address is the test peeking_leaves_the_record of ring_test.c under
# AddressSanitizer and UndefinedBehaviorSanitizer.
#
# Other columns of vm_layout.h run without sanitizers, as these take long to compile: unmapped pages around each object
# still catch reads beyond its end. With PITWALL_VALGRIND=1 (`script/rake test:valgrind`) each program also runs under
# valgrind.
module NativeUnitTests
  def run_unit(unit, sanitizer, arguments, prefix: nil, flags: [])
    known = RUBY_PLATFORM.match?(/(x86_64|aarch64)-linux/)
    skip "layouts are known on 64-bit Linux only" if unit.needs_layout? && !known
    ready = NativeUnit.ready(sanitizer)
    skip ready.reason if ready.reason
    output, passed = NativeUnit.run(*(prefix || ready.prefix), unit.build(sanitizer, flags), *arguments)
    assert passed, output
  end

  NativeUnit.all.each do |unit|
    test_class = Class.new(Minitest::Test) do
      include NativeUnitTests

      unit.sanitizers.each do |sanitizer|
        unit.tests.each { |test| define_method("test_#{test}_with_#{sanitizer}") { run_unit(unit, sanitizer, [test]) } }
      end

      unit.layouts.each do |layout|
        define_method("test_all_in_the_layout_of_#{layout}") do
          run_unit(unit, "none", [], flags: ["-DPW_RUBY=#{layout}"])
        end
      end

      define_method(:test_the_list_names_each_test) do
        sanitizer = unit.sanitizers.first
        ready = NativeUnit.ready(sanitizer)
        skip ready.reason if ready.reason
        output, = NativeUnit.run(*ready.prefix, unit.build(sanitizer), "--list")
        assert_equal unit.tests, output.split("\n")
      end

      define_method(:test_all_with_valgrind) do
        run_unit(unit, "none", ["--quick"], prefix: NativeUnit::VALGRIND)
      end if ENV["PITWALL_VALGRIND"]
    end
    Object.const_set("#{unit.name.split("_").map(&:capitalize).join}UnitTest", test_class)
  end
end
