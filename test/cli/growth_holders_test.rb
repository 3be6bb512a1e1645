# frozen_string_literal: true

require "json"
require_relative "../test_helper"
require_relative "../support/command_line"

# Who holds what grows: the reference path from a root, named.
class GrowthHoldersTest < Minitest::Test
  include CommandLine

  ROUNDS = <<~RUBY
    def rounds(most = 60)
      (1..most).each do |round|
        yield round
        Array.new(50) { |i| "garbage \#{i}" }
        GC.start
        sleep 0.003
      end
    end
  RUBY

  # Line's text → paths.
  def paths(program, *options)
    File.write(file("program.rb"), ROUNDS + program)
    command = ["--", RUBY, "--disable-gems", "program.rb"]
    result = pitwall("allocations", "--growth", "--holders", "--record", file("x.pit"), *options, *command)
    assert_equal 0, result.status.exitstatus, result.err
    object = JSON.parse(pitwall("report", file("x.pit"), "--view", "growth", "--format", "json").out)
    lines = File.read(file("program.rb")).lines
    @losses = object["losses"]
    sites = object["sites"].group_by { |site| lines[site["line"] - 1][/leak \w+/] }
    sites.transform_values { |found| found.flat_map { |site| site["holders"] }.uniq.max_by(2, &:size).first(1) }
  end

  def test_names_of_holders
    found = paths(<<~RUBY)
      module Shop
        ORDERS = []
        class Cache
          @@all = {}
          @entries = []
          def self.all = @@all
          class << self; attr_reader :entries; end
          def initialize = @rows = []
          attr_reader :rows
          ONE = new
        end
      end
      Holder = Struct.new(:list)
      $everything = []
      WRAPPED = Holder.new([])
      def handler = [].then { |kept| -> { kept } }
      HANDLERS = [handler]
      thread_list = Queue.new
      keeper = Thread.new do
        Thread.current.name = "keeper"
        mine = []
        Thread.current[:mine] = mine
        thread_list << mine
        sleep
      end
      theirs = thread_list.pop
      rounds do |round|
        12.times do |i|
          Shop::ORDERS << "leak constant \#{i}"
          Shop::Cache.all[(round * 100) + i] = "leak class_variable \#{i}"
          Shop::Cache.entries << "leak class_instance \#{i}"
          Shop::Cache::ONE.rows << "leak instance \#{i}"
          $everything << "leak global \#{i}"
          WRAPPED.list << "leak struct \#{i}"
          HANDLERS[0].call << "leak closure \#{i}"
          theirs << "leak thread \#{i}"
        end
      end
    RUBY
    assert_equal [["Shop::ORDERS (Array of 720)", "String"]], found["leak constant"]
    assert_equal [["Shop::Cache @@all (Hash of 720)", "String"]], found["leak class_variable"]
    assert_equal [["Shop::Cache @entries (Array of 720)", "String"]], found["leak class_instance"]
    assert_equal [["Shop::Cache::ONE (Shop::Cache)", "@rows (Array of 720)", "String"]], found["leak instance"]
    assert_equal [["$everything (Array of 720)", "String"]], found["leak global"]
    assert_equal [["WRAPPED (Holder)", "list (Array of 720)", "String"]], found["leak struct"]
    closure = found["leak closure"].fetch(0)
    assert_equal ["HANDLERS (Array of 1)", "Array of 720", "String"], closure.grep(/HANDLERS|720|String/),
                 closure.inspect
    assert(closure.any? { |step| step.match?(/\AProc at .*program\.rb:\d+\z/) }, closure.inspect)
    assert_includes found["leak thread"].fetch(0), "Thread keeper"
    assert_empty @losses
  end

  # Their own methods are not called.
  def test_objects_that_override_methods
    found = paths(<<~RUBY)
      class Blank < BasicObject
        def initialize = @held = []
        def __keep(object) = @held << object
      end
      class Liar < Array
        %i[class size is_a? instance_variables object_id inspect == equal? hash nil?].each do |name|
          define_method(name) { |*| abort "called" }
        end
        def self.name = abort("called")
        def self.===(_) = abort("called")
        class << self
          %i[constants const_get instance_variables].each { |name| define_method(name) { |*| abort "called" } }
        end
      end
      BLANK, LIST = Blank.new, Liar.new
      anonymous = Class.new
      autoload :Never, "/nonexistent/never.rb"
      rounds { |round| 12.times { |i|
        BLANK.__keep("leak blank \#{i}")
        LIST << "leak liar \#{i}"
        LIST << anonymous.new.tap { |o| o.instance_variable_set(:@text, "leak anonymous \#{i}") }
      } }
    RUBY
    assert_equal [["BLANK (Blank)", "@held (Array of 720)", "String"]], found["leak blank"]
    assert_equal [["LIST (Liar of 1,440)", "String"]], found["leak liar"]
    assert_equal [["LIST (Liar of 1,440)", "(anonymous class)", "@text (String)"]], found["leak anonymous"]
  end

  def test_ractors
    skip "no Ractors" unless defined?(Ractor)
    found = paths(<<~RUBY)
      Warning[:experimental] = false
      KEEP = []
      rounds { |round| 12.times { |i| KEEP << "leak constant \#{i}" } }
      ractor = Ractor.new { Ractor.respond_to?(:current) && sleep }
      sleep 0.01 until Ractor.count == 2
    RUBY
    if @losses.any? { |text| text.include?("several Ractors") }
      assert_equal [], found["leak constant"]
    else # Ruby 3.1: all ended before
      assert(@losses.any? { |text| text.include?("first Ractor") }, @losses.inspect)
      assert_equal [["KEEP (Array of 720)", "String"]], found["leak constant"]
    end
  end

  def test_forked_child_and_text
    found = paths(<<~RUBY)
      KEEP = []
      Process.wait(fork { rounds { |round| 12.times { |i| KEEP << "leak child \#{i}" } } })
    RUBY
    assert_equal [["KEEP (Array of 720)", "String"]], found["leak child"]
    shown = pitwall("report", file("x.pit"), "--view", "growth").out.force_encoding(Encoding::UTF_8)
    assert_match(/^    held by KEEP \(Array of 720\) → String$/, shown)
    markdown = pitwall("report", file("x.pit"), "--view", "growth", "--format", "markdown").out
    markdown = markdown.force_encoding(Encoding::UTF_8)
    assert_match(/^- `program\.rb:\d+` held by KEEP \(Array of 720\) → String$/, markdown)
    redacted = JSON.parse(pitwall("report", file("x.pit"), "--view", "growth", "--format", "json", "--redact").out)
    assert_equal [[["KEEP (Array of 720)", "String"]]], redacted["sites"].map { |site| site["holders"] }
    audit = pitwall("report", file("x.pit"), "--audit").out
    assert_match(/^steps of reference paths.*\n +KEEP \(Array of 720\)/, audit)
  end

  def test_only_with_growth
    result = pitwall("allocations", "--holders", "--", RUBY, "-e", "1", env: { "PITWALL_DEBUG" => nil })
    assert_one_line(2, /--holders: is of --growth/, result)
  end
end
