# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/native_objects"
require "pitwall/symbols"

class DemanglingTest < Minitest::Test
  Demangling = Pitwall::Symbols::Demangling

  def setup
    @objects = NativeObjects.new
  end

  def teardown = @objects.remove

  def names_in(object) = Demangling.new.call(@objects.functions(object).keys)

  def test_functions_of_cpp
    @objects.cpp
    names = names_in("libcart.so")
    assert_equal "shop::Cart::total", names["_ZN4shop4Cart5totalEi"]
    assert_equal "shop::Cart::total", names["_ZN4shop4Cart5totalEl"]
    secret = names.find { |name, _| name.include?("secret") }
    assert_equal "shop::(anonymous namespace)::secret", secret.last
    refute names.key?("enter")
  end

  if NativeObjects.rust?
    %w[legacy v0].each do |mangling|
      define_method("test_functions_of_rust_in_#{mangling}_mangling") do
        names = names_in(File.basename(@objects.rust(mangling))).values
        assert_includes names, "rusty::cart::Cart::total" if mangling == "legacy"
        assert_includes names, "<rusty::cart::Cart>::total" if mangling == "v0"
        assert_includes names, "<rusty::cart::Cart as core::fmt::Display>::fmt"
        own = names.select { |name| name.include?("rusty::") }
        assert_empty own.grep(/17h\h{16}|\[\h+\]|\$\w+\$/)
      end
    end

    # Rust's older names need no program.
    def test_rust_without_a_demangler
      names = @objects.functions(File.basename(@objects.rust("legacy"))).keys
      found = Demangling.new(command: ["/nowhere/c++filt"]).call(names)
      assert_includes found.values, "<rusty::cart::Cart as core::fmt::Display>::fmt"
    end
  end

  def test_rusts_older_names
    { "_ZN4core3fmt9Formatter3pad17h0123456789abcdefE" => "core::fmt::Formatter::pad",
      "_ZN71_$LT$Test$u20$$u2b$$u20$$u27$static$u20$as$u20$foo..Bar$LT$Test$GT$$GT$3bar17h930b740aa94f1d3aE" =>
        "<Test + 'static as foo::Bar<Test>>::bar",
      "_ZN4core3ops8function6FnOnce40call_once$u7b$$u7b$vtable.shim$u7d$$u7d$17h0123456789abcdefE" =>
        "core::ops::function::FnOnce::call_once{{vtable.shim}}",
      "_ZN4$RP$x17h0123456789abcdefE" => nil, "_ZN99x17h0123456789abcdefE" => nil }.each do |name, readable|
      found = Pitwall::Symbols.const_get(:RustName).demangle(name)
      readable ? assert_equal(readable, found) : assert_nil(found, name)
    end
  end

  def test_names_that_are_not_mangled_start_no_program
    command = ["/bin/sh", "-c", "touch #{@objects.path("ran")}"]
    names = %w[main rb_funcall __write libx.so.1+0x10 _start _Zebra\ x] << "vm_exec_core"
    assert_empty Demangling.new(command: command).call(names)
    refute_path_exists @objects.path("ran")
  end

  def test_names_stay_where_the_program_is_missing_or_fails
    [["/nowhere"], ["false"], %w[sh -c exit], ["sh", "-c", "cat; kill -9 $$"], %w[head -n1]].each do |command|
      assert_empty Demangling.new(command: command).call(%w[_ZN1a1bEv _ZN1a1cEv]), command
    end
  end

  def test_damaged_names_stay_and_keep_none_from_the_others
    random = Random.new(3)
    names = Array.new(500) do
      name = "_ZNSt8__detail9_Map_baseIiSt4pairIKiiESaIS3_ENS_10_Select1stEE2atERS2_".dup
      (1 + random.rand(5)).times do
        name[2 + random.rand(name.size - 2)] = ("0".."z").grep(/\w/).sample(random: random)
      end
      name
    end
    found = Demangling.new.call(names + ["_ZN1a1bEv", "_Z#{"P" * 4000}i"])
    assert_equal "a::b", found["_ZN1a1bEv"]
    found.each { |name, readable| refute_equal name, readable }
  end

  def test_is_told
    assert Demangling.available?
  end
end
