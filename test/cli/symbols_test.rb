# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/native_objects"
require_relative "../support/recording_builder"
require "json"
require "pitwall/cli"
require "pitwall/cli/support/output_file"
require "stringio"

# Names of native frames, as the commands show them.
class SymbolsTest < Minitest::Test
  CPP = "_ZN4shop4Cart5totalEi"

  def setup
    @objects = NativeObjects.new
    @objects.c
    functions = @objects.functions("libshop.so")
    @hidden = format("libshop.so+0x%x", functions["hidden"])
    write("a.pit", 90)
    write("b.pit", 50)
    Dir.mkdir(@objects.path("symbols"))
    FileUtils.cp(@objects.path("libshop.so"), @objects.path("symbols"))
  end

  def teardown = @objects.remove

  # Ruby calls a method of a C extension, that calls a local function and one of C++.
  def write(name, hidden)
    id = @objects.build_id("libshop.so")
    bytes = RecordingBuilder.build do |segment|
      segment.thread(1, "main")
      segment.shared_object("/opt/libshop.so", id)
      ruby = [["Object#main", "/app/x.rb", 1, 3, 0], ["Shop#enter", "", 0, 0, 1]]
      segment.row(stack: ruby + [["shop_enter", "/opt/libshop.so", 0, 0, 3], [@hidden, "/opt/libshop.so", 0, 0, 3]],
                  wall: hidden * 1_000_000, cpu: hidden * 1_000_000, captures: hidden)
      segment.row(stack: ruby + [[CPP, "/opt/libcart.so", 0, 0, 3]], wall: 10_000_000, cpu: 10_000_000, captures: 10)
    end
    File.binwrite(@objects.path(name), bytes)
  end

  def run_command(*arguments)
    out, err = StringIO.new, StringIO.new
    status = Dir.chdir(@objects.dir) { Pitwall::CLI.run(arguments, out: out, err: err) }
    [status, out.string, err.string]
  end

  def names(*arguments)
    status, out, err = run_command("report", "a.pit", "--native", "--format", "json", *arguments)
    assert_equal [0, ""], [status, err]
    report = JSON.parse(out)
    [report["methods"].map { |method| method["name"] }, report["warnings"]]
  end

  def test_by_address_without_symbols_and_by_name_with_them
    assert_includes names.first, @hidden
    found, warnings = names("--symbols", "symbols")
    assert_includes found, "hidden"
    refute_includes found, @hidden
    assert_empty warnings
  end

  def test_nothing_of_the_machine_is_read_by_default
    File.delete(@objects.path("libshop.so"))
    named = names("--symbols", "symbols").first
    assert_equal names.first.sort, named.map { |name| name == "hidden" ? @hidden : name }.sort
  end

  def test_demangled_unless_linkage_names_are_asked_for
    assert_includes names.first, "shop::Cart::total"
    assert_includes names("--no-demangle").first, CPP
  end

  def test_a_method_by_either_name
    [["--callers", "Cart::total"], ["--callers", CPP], ["--callers", CPP, "--no-demangle"]].each do |arguments|
      status, out, err = run_command("report", "a.pit", "--native", *arguments)
      assert_equal [0, ""], [status, err]
      assert_match(/Shop#enter/, out)
    end
    status, out, = run_command("export", "a.pit", "--native", "--blackbox", CPP, "--to", "collapsed", "--out", "-")
    assert_equal 0, status
    assert_match(/shop::Cart::total/, out)
  end

  def test_what_is_not_found_is_told
    Dir.mkdir(@objects.path("empty"))
    found, warnings = names("--symbols", "empty")
    assert_includes found, @hidden
    assert_match(/--symbols: libshop.so: no file has its build id \h{40}/, warnings.map(&:to_s).join)
  end

  def test_folders_without_effect_are_told
    _, out, = run_command("report", "a.pit", "--symbols", "symbols")
    assert_match(/--symbols: native frames are folded here; --native .report, export. or --only native shows them/, out)
    status, _, err = run_command("report", "a.pit", "--symbols", "nowhere")
    assert_equal 2, status
    assert_match(/--symbols nowhere: no such folder/, err)
  end

  def test_exports_and_pages_have_the_names
    _, out, = run_command("export", "a.pit", "--native", "--symbols", "symbols", "--to", "collapsed", "--out", "-")
    assert_match(/shop_enter.*;hidden.* \d+$/, out)
    _, out, = run_command("report", "a.pit", "--native", "--symbols", "symbols", "--format", "html")
    refute_includes out, @hidden
  end

  def test_hashed_paths_have_names_too
    _, out, = run_command("report", "a.pit", "--native", "--symbols", "symbols", "--redact", "--format", "json")
    assert_includes out, '"hidden"'
    refute_includes out, "/opt/"
  end

  def test_the_audit_lists_build_ids
    _, out, = run_command("report", "a.pit", "--audit")
    assert_includes out, @objects.build_id("libshop.so")
  end

  def test_comparing
    status, _, err = run_command("compare", "a.pit", "b.pit", "--symbols", "symbols")
    assert_includes [0, 3], status, err
    status, _, err = run_command("compare", "--symbols", "symbols", "--", "true")
    assert_equal 2, status
    assert_match(/--symbols: is for recordings/, err)
  end
end
