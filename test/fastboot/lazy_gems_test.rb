# frozen_string_literal: true

require_relative "../test_helper"
require "pitwall/fastboot/last_boot"
require_relative "../support/command_line"

# `pitwall boot cache lazy`, and boots with its list. Each gem of the bundle does one thing when it is loaded.
class LazyGemsTest < Minitest::Test
  include CommandLine

  LIB = File.join(Checkout::ROOT, "lib")
  SLOW = "sleep 0.002" # gems that are loaded in less than 1 ms are not worth it

  # Loaded first, and always: it adds a method to Kernel.
  BASE = <<~'RUBY'
    require "set"
    module Kernel; private def base_was_here = 1; end
    module Base
      LIST = []; HASH = { a: 1 }; TEXT = +"text"; SET = Set[2]; POINT = Struct.new(:x).new(1); NAMES = [:a]
      OBJECT = Object.new; FREE = Object.new; SINGLE = Object.new; SHOWN = 1; OLD = nil
      class Told; def self.inherited(child) = super; end
      class Plain; def value = 1; end
      class Error < StandardError; end
      module Hooked; def self.included(mod) = HASH[mod] = 1; end
      @setting = 1
      @@variable = 1
      class << self; attr_accessor :setting; end
      def self.variable=(value); @@variable = value; end
      def self.old = 1
      module Failed; autoload :Late, "base/nothing"; end
    end
    require "base/nothing" # it does not define the constant
  RUBY

  # gem => [code, why it can't wait; nil: it can]
  GEMS = {
    "quiet" => ["module Quiet; class Error < StandardError; end; def self.value = 1; end", nil],
    "exception" => ["module Exception_; class Error < Base::Error; end; end", nil],
    "standard" => ["module Standard; Point = Struct.new(:x); class List < Array; end; end", nil],
    "extends" => ["module Base; module Extra; VALUE = 3; end; end", nil],
    "reads" => ["module Reads; NAMES = Base::LIST.map(&:name); end", /makes Reads::NAMES, which/],
    "random" => ["module Random_; TOKEN = rand.to_s; end", nil],
    "asks" => ["module Asks; @known = defined?(Later); end", /makes Asks @known, which/],
    "included" => ["module Included; include Comparable; extend Enumerable; end", nil],
    "libraries" => ["require 'abbrev_of_tests'; module Libraries; VALUE = AbbrevOfTests; end", nil],
    "parts" => ["require_relative 'parts/one'; require 'parts/two'; module Parts; end", nil],
    "parts-dashed" => ["module PartsDashed; end", nil],
    # `owner` requires `owned`, and Bundler requires `owned` later. Then Bundler must load the waiting `owner` first.
    "owner" => ["require 'owned'; module Owner; VALUE = Owned::FULL; end", nil],
    "owned" => ["module Owned; end; module Owned; FULL = 1; end", //],
    "autoloads" => ["module Autoloads; end; module Base; autoload :Late, 'autoloads/late'; end", /adds autoloads/],
    "used" => ["module Used; VALUE = 7; end", nil],
    "asked" => ["require_relative 'asked/part'; module Asked; VALUE = 8; end", nil],
    "method" => ["module Method_; end; class String; def shout = upcase; end", /defines shout in String/],
    "redefines" => ["module Redefines; end; class Base::Plain; def value = 2; end", /defines value in Base::Plain/],
    "undefines" => ["module Undefines; end; class << Base; remove_method :old; end", /removes old of Base itself/],
    "undefines_above" => ["module UndefinesAbove; end; class Base::Plain; undef to_s; end", /removes to_s of Base::P/],
    "hides" => ["module Hides; end; class Base::Plain; private :value; end", /defines value in Base::Plain/],
    "protects" => ["module Protects; end; class Base::Plain; protected :value; end", /defines value in Base::Plain/],
    "extends_object" => ["module ExtendsObject; end; Base::SINGLE.extend(ExtendsObject)", /extends an Object/],
    "hides_constant" => ["module HidesConstant; end; Base.private_constant :SHOWN", /removes SHOWN of Base$/],
    "private_constant" => ["class Base::Secret; end; Base.private_constant :Secret", /calls Module#private_constant/],
    "own_constant" => ["module OwnConstant; SECRET = 1; private_constant :SECRET; end", nil],
    "replaces" => ["module Replaces; end; Base.send(:remove_const, :OLD); Base::OLD = 1",
                   /gives OLD of Base another value/],
    "prepends" => ["module Prepends; end; Base::Plain.prepend(Prepends)", /modules in Base::Plain/],
    "hooked" => ["module HookedIn; include Base::Hooked; end", /changes a Hash/],
    "registers" => ["module Registers; Base::LIST << self; end", /changes an Array/],
    "immediate" => ["module Immediate; Base::NAMES[0] = :b; end", /changes an Array/],
    "key" => ["module Key; Base::HASH[:a] = 2; end", /changes a Hash/],
    "text" => ["module Text_; Base::TEXT << 'more'; end", /changes a String/],
    "adds_to_set" => ["module AddsToSet; Base::SET << 1; end", /changes/],
    "element" => ["module Element; Base::SET.delete(2).add(3); end", /changes/],
    "default" => ["module Default; Base::HASH.default = 1; end", /calls Hash#default=/],
    "own_default" => ["module OwnDefault; HASH = {}; HASH.default = 1; end", nil],
    "struct" => ["module Struct_; Base::POINT.x = 2; end", /changes an object of a nameless class/],
    "object" => ["module Object_; Base::OBJECT.instance_variable_set(:@x, 1); end", /changes an Object/],
    "freezes" => ["module Freezes; Base::FREE.freeze; end", /changes an Object/],
    "single" => ["module Single; def (Base::OBJECT).x = 1; end", /defines x for an Object/],
    "setting" => ["module Setting; Base.setting = 2; end", /changes Base/],
    "variable" => ["module Variable; Base.variable = 2; end", /changes Base/],
    "told" => ["class Told < Base::Told; end", /subclasses Base::Told/],
    "plain" => ["class PlainChild < Base::Plain; end", /subclasses Base::Plain/],
    "global" => ["module Global; end; $of_the_test = 1", /changes global variables/],
    "environment" => ["module Environment; end; ENV['OF_THE_TEST'] = '1'", /changes the environment/],
    "ends" => ["module Ends; end; at_exit { }", /calls at_exit/],
    "traps" => ["module Traps; end; trap('USR2') { }", /calls trap/],
    "starts_thread" => ["module StartsThread; end; Thread.new { }.join", /calls Thread.new/],
    "traces" => ["module Traces; end; TracePoint.new(:raise) { }.enable", /calls TracePoint#enable/],
    "folder" => ["module Folder; end; Dir.chdir('/')", /changes the working directory/],
    "at_end" => ["module AtEnd; end; END { }", /has an END block/],
    "prints" => ["module Prints; end; $stderr.puts 'printed'", /calls IO#write/],
    "warns" => ["module Warns; end; warn 'printed'", /calls Warning#warn/],
    "syncs" => ["module Syncs; end; $stdout.sync = true", /calls IO#sync=/],
    "runs" => ["module Runs; end; system('true')", /calls system/],
    "pipes" => ["module Pipes; end; IO.popen('true').close", /calls IO.popen/],
    "forks" => ["module Forks; end; Process.wait(fork { exit!(0) })", /calls Process._fork/],
    "ractor" => ["module R; end; Ractor.new { $stderr.puts 'printed' }.__send__(RUBY_VERSION < '4' ? :take : :value)",
                 /calls Ractor.new/],
    "finalizer" => ["module Finalizer; end; ObjectSpace.define_finalizer(Base::OBJECT, proc { })", /define_finalizer/],
    "short_global" => ["module ShortGlobal; end; $q = 1", /changes global variables/],
    "priority" => ["module Priority; end; Thread.current.priority += 1", /changes settings of threads/],
    "beside_failed" => ["module BesideFailed; end; module Base::Failed; def b = 1; end", /defines b in Base::Failed/],
    "local" => ["module Local; end; Thread.current[:of_the_test] = 1", /changes variables of a thread/],
    "thread_variable" => ["module ThreadVariable; end; Thread.current.thread_variable_set(:of_the_test, 1)",
                          /changes variables of a thread/],
    "storage" => ["module Storage; end; Fiber[:of_the_test] = 1", /changes variables of a thread/],
    "mask" => ["module Mask; end; File.umask(0o033)", /changes the file creation mask/],
    "warnings" => ["module Warnings; end; Warning[:experimental] = !Warning[:experimental]", /changes which warnings/],
    "collects" => ["module Collects; end; GC.measure_total_time = !GC.measure_total_time", /of garbage collection/],
    "seed" => ["module Seed; end; srand(1)", /changes the seed/],
    "constants" => ["module Constants; end; Base::OBJECT.singleton_class.const_set(:X, 1)", /adds X to/],
    "nothing" => ["", /defines no constant/],
    # It copies the methods of Base. `later` adds a method to Base.
    "looks" => ["module Looks; Base.singleton_methods.sort.each { |name| define_singleton_method(name) { } }; end",
                /makes Looks/],
    "later" => ["module Later; end; def Base.later = 1", /defines later in Base itself/],
    "files" => ["module Files; end", /is loaded by several files/]
  }.freeze
  OPTIONS = { "files" => %(, require: ["files", "files/more"]), "unwanted" => ", require: false" }.freeze
  MORE_FILES = {
    "parts/lib/parts/one.rb" => "class PartsOne; VALUE = 1; end\nmodule PartsBeside; end",
    "parts/lib/parts/two.rb" => "module PartsTwo; end",
    "base/lib/base/nothing.rb" => "",
    "asked/lib/asked/part.rb" => "module Asked; PART = 1; end",
    "files/lib/files/more.rb" => "",
    "autoloads/lib/autoloads/late.rb" => "module Base::Late; end",
    "fails/lib/fails/part.rb" => "module Fails; PART = FULL; end",
    "unwanted/lib/unwanted.rb" => "raise 'unwanted'",
    "abbrev_of_tests/lib/abbrev_of_tests.rb" => "require 'abbrev_of_tests/version'\nmodule AbbrevOfTests2; end",
    "abbrev_of_tests/lib/abbrev_of_tests/version.rb" => "module AbbrevOfTests; VERSION = 1; end"
  }.freeze

  PROGRAM = <<~'RUBY'
    require "bundler/setup"
    require "pathname"
    Bundler.require
    p Used::VALUE
    p require("asked/part"), Asked::VALUE
    Pitwall::Fastboot.load_lazy_gems if ARGV == ["load"]
    exit if ARGV != ["all"]

    p Object.const_defined?(:Quiet), defined?(Quiet), Object.constants.include?(:PartsTwo), defined?(PartsThree)
    p require("parts/one"), PartsOne::VALUE, PartsBeside, PartsTwo, Parts
    p require("abbrev_of_tests"), AbbrevOfTests::VERSION, AbbrevOfTests2, Libraries::VALUE
    p Base::Extra::VALUE, Libraries, Standard::Point.new(2), Exception_::Error.ancestors.include?(Base::Error)
    threads = Array.new(4) { |i| Thread.new { i.odd? ? Quiet.value : (require("quiet"); Quiet.name) } }
    p threads.map(&:value)
    begin
      raise Quiet::Error
    rescue Base::Error, Quiet::Error => error
      p error
    end
    p Bundler.definition.dependencies.to_h { |dependency| [dependency.name, dependency.autorequire] }
    named = Object.new
    def named.to_str = "standard"
    p require(Pathname("exception")), require(named)
    begin
      NoSuchConstant
    rescue NameError => error
      puts error.message
    end
  RUBY

  def setup
    super
    write_bundle
  end

  def write_bundle(gems = GEMS)
    sources = { "base" => BASE }
    sources.update(gems.to_h { |name, (code, _)| [name, "#{SLOW}\n#{code}"] })
    folders = sources.keys + %w[abbrev_of_tests unwanted]
    more = MORE_FILES.select { |path, _| folders.include?(path[%r{\A[^/]+}]) }
    folders.each { |name| write_gem(name) }
    sources.each { |name, code| write_files("gems/gems/#{name}-1.0/lib/#{name.tr("-", "/")}.rb" => code) }
    more.each { |path, code| write_files("gems/gems/#{path.sub("/", "-1.0/")}" => code) }
    lines = (folders - ["abbrev_of_tests"]).map { |name| "gem '#{name}'#{OPTIONS[name]}\n" }
    write_files("Gemfile" => lines.join, "main.rb" => PROGRAM)
  end

  def write_gem(name)
    dependency = "; s.add_dependency 'abbrev_of_tests'" if name == "libraries"
    write_files("gems/specifications/#{name}-1.0.gemspec" => <<~RUBY)
      Gem::Specification.new do |s|
        s.name = "#{name}"; s.version = "1.0"; s.summary = "x"; s.authors = ["x"]#{dependency}
      end
    RUBY
  end

  def bundle
    { "GEM_PATH" => [file("gems"), *Gem.path].join(":"), "GEM_HOME" => file("gems"), "BUNDLE_PATH" => nil,
      "BUNDLE_GEMFILE" => file("Gemfile"), "BUNDLE_APP_CONFIG" => file("x"), "RAILS_ENV" => nil, "RACK_ENV" => nil }
  end

  # @param action what `pitwall boot cache` is to do
  def cache(*action, command: ["main.rb"])
    variables = bundle.map { |name, value| value ? "#{name}=#{value}" : "-u#{name}" }
    unset, set = variables.partition { |argument| argument.start_with?("-u") }
    run = ["--", "env", *unset, *set, RUBY, *command] if command
    pitwall("boot", "cache", *action, *run, env: { "PITWALL_BOOT_CACHE" => file("cache") })
  end

  # @return the output of the program with its counts
  def boot(*arguments, env: {}, fast: true, setup: "require 'pitwall/fastboot'")
    code = fast ? ["-e", setup, "-e", "at_exit { warn 'stats ' + Pitwall::Fastboot.stats.inspect }"] : []
    capture({ **bundle, "PITWALL_BOOT_CACHE" => file("cache"), **env }, RUBY, "-I#{LIB}", *code,
            "-e", "load ARGV.shift", "main.rb", *arguments)
  end

  def stats(result) = eval(result.err[/^stats (\{.*\})$/, 1])

  def waiting(result) = stats(result)["lazy_gems"].to_i

  def lists = Dir[file("cache/lazy-gems-*")]

  def test_gems_that_change_nothing_wait
    return assert_refused_without_attached_object if RUBY_VERSION < "3.2"

    result = cache("lazy")
    assert_predicate result.status, :success?, result.out + result.err
    waits, used, loaded = result.out.split(/^used .*|^loaded at once.*/)
    can_wait = GEMS.select { |_, (_, why)| why.nil? }.keys
    assert_equal (can_wait - %w[used asked owner]).sort, names(waits).sort, result.out
    assert_equal %w[asked owner used], names(used).sort
    reasons = loaded.gsub(/\n {20,}/, " ").lines.to_h { |line| line.split(/ {2,}/).values_at(-2, -1) }
    GEMS.each { |name, (_, why)| assert_match why, reasons[name].to_s, "#{name}: #{result.out}" if why }
    assert_predicate cache("verify", "--boot").status, :success?
    assert_boots(can_wait.size - 3)
    clear = cache("clear", command: nil)
    assert_match(/lazy-gems/, clear.out)
    assert_empty lists
  end

  def names(lines) = lines.lines.filter_map { |line| line[/^ *[\d.]+ m?s  (\S+)/, 1] }

  def assert_boots(count)
    expected = boot("all", fast: false)
    assert_predicate expected.status, :success?, expected.err
    found = boot("all")
    assert_equal expected.out, found.out, found.err
    assert_equal count, waiting(found), found.err
    # The program uses some of the gems.
    assert_includes 5..count - 1, stats(found)["lazy_woken"], found.err
    short = boot
    assert_equal [count, nil], stats(short).values_at("lazy_gems", "lazy_woken"), short.err
    assert_doubts(count)
  end

  # If the list may belong to another program, Bundler loads all gems.
  def assert_doubts(count)
    assert_equal 0, waiting(boot(env: { "PITWALL_FASTBOOT_LAZY" => "off" }))
    assert_equal 0, waiting(boot(env: { "RAILS_ENV" => "test" }))
    assert_equal 0, waiting(boot(setup: "require 'pitwall/fastboot/setup'; Pitwall::Fastboot.setup(lazy_gems: false)"))
    assert_equal count - 1, waiting(boot(setup: "require 'pitwall/fastboot'; module Quiet; end"))
    assert_equal [count, count], stats(boot("load")).values_at("lazy_gems", "lazy_woken")
    File.write(file("Gemfile"), "# changed\n", mode: "a")
    assert_equal 0, waiting(boot)
  end

  def assert_refused_without_attached_object
    result = pitwall("boot", "cache", "lazy", "--", RUBY, "-e", "1")
    assert_match(/\Apitwall: boot cache lazy needs Ruby 3\.2 or newer; this is 3\.1/, result.err)
    refute_predicate result.status, :success?
  end

  def test_what_is_no_list_and_lists_that_do_not_fit
    return if RUBY_VERSION < "3.2"

    write_bundle(GEMS.slice("quiet", "parts", "used", "asked", "standard", "exception", "libraries"))
    assert_predicate cache("lazy").status, :success?
    assert_equal 1, lists.size
    list, = lists
    text = File.read(list)
    ["", "x", text.sub("1\n", "2\n"), text.tr("\t", " "), "\xff#{text}".b, text.sub(/^gem.*\n/, ""),
     text.gsub("Object", "object"), text.gsub("Object", "No::Such"), text.gsub(%r{/gems/gems/}, "/gone/"),
     text.gsub(/^constant.*\n/, "")].each do |content|
      File.binwrite(list, content)
      result = boot
      assert_equal ["7\nfalse\n8\n", 0], [result.out, waiting(result)], "#{content[0, 300]}\n#{result.err}"
    end
    File.binwrite(list, text)
    assert_equal 5, waiting(boot)
    File.chmod(0o666, list)
    assert_equal 0, waiting(boot), "other users may write the list"
  end

  GROWS = <<~'RUBY'
    require "bundler/setup"
    Bundler.require
    KEPT = []
    growths = -> { Pitwall::Fastboot.stats["gc_growths"].to_i }
    150.times { load "./a.rb"; KEPT << "x" * 1_000_000 }
    200.times { growths.call.zero? and sleep 0.01 }
  RUBY

  # If gems wait and the last boot shows that no collection is needed, the boot does not collect.
  def test_a_boot_without_a_collection
    return if RUBY_VERSION < "3.4"

    write_bundle(GEMS.slice("quiet"))
    write_files("main.rb" => "require 'bundler/setup'; Bundler.require; 'x' * 100_000_000")
    result = cache("lazy")
    assert_predicate result.status, :success?, result.err
    write_files("main.rb" => GROWS, "a.rb" => "A = 1 unless defined?(A)")
    text = File.read(lists.first)
    plain = text[/^memory\t(\d+)$/, 1].to_i
    assert_includes 105..250, plain
    assert_equal 1, growths(text, 0), "unknown"
    noted = last_boot["gc_uncollected"]
    assert_operator noted, :>, 150
    # The program keeps what it makes. So a boot without the collection needs as much memory.
    found = ["1", noted.to_s, (10**30).to_s, "much", nil].map do |memory|
      growths(text.sub(/^memory.*/, ["memory", *memory].join("\t")), noted)
    end
    assert_equal [1, 0, 0, 1, 1], found
    large = text.sub(/^memory.*/, "memory\t#{noted}")
    assert_equal 1, growths(large, noted * 2), "it does not fit"
    assert_equal 1, growths(large, noted, command: "another"), "another program's note"
    assert_equal 1, growths(large, 1), "the boot needs more than the last one"
  end

  # @param text of the list
  # @param noted MiB that the last boot would have taken without collections
  # @return how many rests ended because memory had grown
  def growths(text, noted, command: "-e")
    File.write(lists.first, text)
    File.write(file("cache/last-boot"), "command=#{command}\ngc_uncollected=#{noted}\n")
    result = boot
    assert_equal 1, waiting(result), result.err
    stats(result)["gc_growths"].to_i
  end

  def last_boot = Pitwall::Fastboot::LastBoot.read(file("cache"))

  FAILS = <<~'RUBY'
    require "bundler/setup"
    Bundler.require
    exit if ARGV.empty?
    ENV["FAILS"] = "1"
    2.times do
      Fails
    rescue RuntimeError => error
      p error.message
    end
    ENV.delete("FAILS")
    p require("fails/part"), Fails::PART
  RUBY

  # After loading a gem has failed, a part of the gem needs the whole gem, too.
  def test_a_gem_that_can_be_loaded_only_later
    return if RUBY_VERSION < "3.2"

    write_bundle("fails" => ["raise 'no' if ENV['FAILS']; module Fails; FULL = 1; end; require 'fails/part'"])
    write_files("main.rb" => FAILS)
    list = cache("lazy")
    assert_predicate list.status, :success?, list.err
    result = boot("all")
    assert_equal [%("no"\n"no"\nfalse\n1\n), 1], [result.out, waiting(result)], result.err + list.out
  end

  # Without the accelerator Ruby ignores these autoloads, because the constants are there.
  def test_a_program_with_autoloads_of_waiting_gems
    return if RUBY_VERSION < "3.2"

    write_bundle(GEMS.slice("quiet", "parts", "standard"))
    write_files("main.rb" => <<~'RUBY')
      require "pathname"
      require "bundler/setup"
      Module.prepend(Module.new { def autoload(...) = super })
      Bundler.require
      autoload :Quiet, "quiet"
      Kernel.autoload(:Quiet, "quiet")
      Object.autoload "PartsOne", Pathname("parts/one")
      def on_any_object = autoload(:Standard, "other")
      "".send(:on_any_object)
      module Mine; autoload :Quiet, "mine"; autoload :Other, "other"; def self.late = autoload(:Late, "late"); end
      Mine.late
      p Mine.autoload?(:Quiet), Mine.autoload?(:Late), autoload?(:Other), (autoload(:Quiet, "") rescue $!.class)
      exit if ARGV.empty?
      p Quiet.value, PartsOne::VALUE, PartsTwo, require("standard"), Standard::Point.new(1)
    RUBY
    list = cache("lazy")
    assert_predicate list.status, :success?, list.err
    expected = boot("all", fast: false)
    result = boot("all")
    assert_equal [expected.out, 3], [result.out, waiting(result)], result.err + list.out
  end

  def test_commands_that_fail
    return if RUBY_VERSION < "3.2"

    result = cache("lazy", command: ["-e", "exit 3"])
    assert_equal ["not compared: the command failed with the accelerator\n", 3],
                 [result.out, result.status.exitstatus], result.err
    result = cache("lazy", command: ["-e", "1"])
    assert_match(/\Apitwall: the command has loaded no Gemfile/, result.err)
    assert_equal "", result.out
    result = cache("lazy", command: nil)
    assert_match(/no command/, result.err)
    assert_empty lists
  end
end
