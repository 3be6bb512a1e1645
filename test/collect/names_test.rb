# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/recorded_program"

# What frames are called, and which line they stand at.
class NamesTest < Minitest::Test
  include RecordedProgram

  # By signals, where a test says nothing else: a reader on another core may come late on a busy machine.
  def settings = @settings || { mode: "signal" }

  # Every kind of code, each burning for a while; what follows "#=" on the line is the name of the frame that runs it.
  SHAPES = <<~'RUBY'
    module Outer
      class Inner
        def plain = burn(0.02) #= Outer::Inner#plain
        def self.on_class = burn(0.02) #= Outer::Inner.on_class
        class << self
          def in_singleton_class = burn(0.02) #= Outer::Inner.in_singleton_class
        end
        def with_block = [1].each { burn(0.02) } #= block in Outer::Inner#with_block
        def with_nested_block
          [1].each do
            [1].each { burn(0.02) } #= block (2 levels) in Outer::Inner#with_nested_block
          end
        end
        def self.block_on_class = [1].each { burn(0.02) } #= block in Outer::Inner.block_on_class
        define_method(:defined) { burn(0.02) } #= block in <class:Inner>
        def method_missing(name, *) = name == :ghost ? burn(0.02) : super #= Outer::Inner#method_missing
        def respond_to_missing?(*) = true
        def rescuing
          raise IOError
        rescue IOError
          burn(0.02) #= rescue in Outer::Inner#rescuing
        end
        def ensuring
          return
        ensure
          burn(0.02) #= Outer::Inner#ensuring
        end
        def optional(value = burn(0.02)) = value #= Outer::Inner#optional
        private def hidden = burn(0.02) #= Outer::Inner#hidden
        def aliased_from = burn(0.02) #= Outer::Inner#aliased_from
        alias aliased_to aliased_from
      end
      def self.on_module = burn(0.02) #= Outer.on_module
      def mixed_in = burn(0.02) #= Outer#mixed_in
    end
    class Child < Outer::Inner
      include Outer
      def plain = super
    end
    module Refined
      refine String do
        def refinement = burn(0.02) #= (anonymous class)#refinement
      end
    end
    using Refined
    anonymous_class = Class.new { def in_anonymous = burn(0.02) } #= (anonymous class)#in_anonymous
    anonymous_module = Module.new { def in_anonymous_module = burn(0.02) } #= (anonymous module)#in_anonymous_module
    singleton = Object.new
    def singleton.only_here = burn(0.02) #= #<Object>.only_here
    Point = Struct.new(:x) do
      def in_struct = burn(0.02) #= Point#in_struct
    end
    class Body
      burn(0.02) #= <class:Body>
    end
    a_lambda = -> { burn(0.02) } #= block in <main>
    def top_level = burn(0.02) #= Object#top_level
    evaluated = "def evaluated = burn(0.02)"

    start
    inner = Outer::Inner.new
    %i[plain with_block with_nested_block defined ghost rescuing ensuring optional aliased_to].each { |name| inner.public_send(name) }
    inner.send(:hidden)
    %i[on_class in_singleton_class block_on_class].each { |name| Outer::Inner.public_send(name) }
    Outer.on_module
    Child.new.mixed_in
    Child.new.plain
    "".refinement
    anonymous_class.new.in_anonymous
    Object.new.extend(anonymous_module).in_anonymous_module
    singleton.only_here
    Point.new(1).in_struct
    load "body.rb"
    a_lambda.call
    top_level
    eval(evaluated, binding, "elsewhere.erb", 42)
    evaluated()
    stop
  RUBY

  # Ruby tells a method for its blocks as well (rb_profile_frames gives the method entry): which of them ran, the line tells.
  # So "block in " and "rescue in " may be missing before a method's name.
  def named?(got, name, line)
    plain = name.sub(/\A(block .*|rescue )in (?=\w)/, "")
    [name, plain].any? { |wanted| [wanted, "#{wanted} (program.rb:#{line})"].include?(got) }
  end

  # One program for all tests of this class: what they ask for is in one recording.
  def shapes
    File.write(file("body.rb"), "class Body\n  burn(0.02)\nend\n")
    run_program(SHAPES.sub(/^class Body\n.*\nend\n/, "\n\n\n"))
    tree(segment)
  end

  # [method's name, path's base name, line that ran] of the callers of `burn`.
  def callers_of_burn(tree)
    (1...tree.size).filter_map do |node|
      next unless tree.methods[tree.node_methods[node]].name == "Object#burn"

      parent = tree.parents[node]
      method = tree.methods[tree.node_methods[parent]]
      [method.name, File.basename(method.path), tree.lines[parent]]
    end.uniq
  end

  def test_names_and_lines_of_every_kind_of_code = names_and_lines

  # What was burned between two looks that came late, nobody knows.
  def test_names_and_lines_from_outside
    @settings = { mode: "outside" }
    names_and_lines
  end

  def names_and_lines
    seen = callers_of_burn(shapes)
    expected = SHAPES.lines.each_with_index.filter_map { |line, at| [line[/#= (.*)/, 1], at + 1] if line.include?("#= ") }
    expected.reject! { |name, _| name == "<class:Body>" }
    missing = expected.reject do |name, line|
      seen.any? { |got, path, at| path == "program.rb" && at == line && named?(got, name, line) }
    end
    elsewhere = [["Object#evaluated", "elsewhere.erb", 42], ["<class:Body>", "body.rb", 2]]
    missing += elsewhere.reject { |name, path, line| seen.any? { |got, *place| place == [path, line] && got.start_with?(name) } }
    assert_operator missing.size * 20_000_000, :<=, late, "missing: #{missing}\nseen: #{seen.map(&:inspect).sort.join("\n")}"
    # An address would make two recordings of one program differ.
    assert_empty seen.map(&:first).grep(/0x\h/)
  end

  def test_c_functions
    run_program(<<~'RUBY')
      NUMBERS = Array.new(3_000) { |i| i * 7919 % 3001 }
      def job
        limit = cpu + 0.5
        while cpu < limit
          10.times { NUMBERS.sort }
          Array.new(3_000) { |i| i.to_s }.join(",").split(",")
          [3, 1].sort_by { |x| 3_000.times.to_a.size }
          Integer.sqrt(7**9_000)
          Math.sqrt(2)
          Regexp.new("a(b|c)*d").match?("abcbcbc" * 300)
          20_000.times { ENV["HOME"] }
        end
      end
      record { job }
    RUBY
    tree = tree(segment)
    functions = tree.methods.select { |method| method.kind == 1 }.map(&:name)
    %w[Array#sort Array#join String#split ENV.[]].each { |name| assert_includes functions, name }
    assert_empty functions.grep(/0x\h|\A\W*\z/)
    assert_sane(segment)
  end

  # Before Ruby names a frame it must have been seen; a program that ends at once still has names.
  def test_names_are_there_after_a_very_short_recording
    run_program("def job = burn(0.004)\nrecord(interval_ns: 100_000) { job }")
    assert_sampled("Object#job", segment)
    assert_sane(segment)
  end

  def test_main_and_required_files
    File.write(file("other.rb"), "burn(0.05)\nmodule Other; def self.call = burn(0.05); end\nOther.call\n")
    run_program("start\nload './other.rb'\nburn(0.02)\nstop")
    seen = callers_of_burn(tree(segment))
    assert_includes seen, ["Other.call", "other.rb", 2]
    assert_includes seen.map { |_, path, line| [path, line] }, ["other.rb", 1]
    assert_includes seen.map { |_, path, line| [path, line] }, ["program.rb", 3]
    assert_equal ["<main>"], tree(segment).methods.select { |method| method.path.end_with?("program.rb") }.map(&:name).uniq
  end

  def test_lines_inside_one_method
    run_program(<<~'RUBY')
      def job
        burn(0.06)
        1.then do |x|
          burn(0.03)
          x
        end
        burn(0.03)
      end
      record { job }
    RUBY
    lines = callers_of_burn(tree(segment))
    assert_equal [["Object#job", 2], ["Object#job", 4], ["Object#job", 7]], lines.map { |name, _, line| [name.delete_prefix("block in "), line] }.sort
  end

  # Frames hold on to what they name: a method that is gone was still called what it was called.
  def test_methods_removed_while_recording
    run_program(<<~'RUBY')
      record(interval_ns: 100_000) do
        30.times do |i|
          eval("class Gone#{i}; def work#{i} = burn(0.005); end; Gone#{i}.new.work#{i}", TOPLEVEL_BINDING, "gone#{i}.rb", 7)
          Object.send(:remove_const, "Gone#{i}")
          GC.start
        end
      end
    RUBY
    names = methods_of(segment).keys
    unseen = (0...30).reject { |i| names.any? { |name| name.end_with?("#work#{i}") } }
    assert_operator unseen.size * 5_000_000, :<=, late, "work#{unseen}"
    assert_sane(segment)
    assert_equal 0, segment.stat("refused_frames")
  end

  def test_names_in_any_encoding
    run_program(<<~'RUBY')
      def größe = burn(0.05)
      self.class.define_method("with \0 and \n") { burn(0.05) }
      self.class.define_method("\xff".b) { burn(0.05) }
      record { größe; send("with \0 and \n"); send("\xff".b) }
    RUBY
    assert_sampled("Object#größe", segment)
    assert_sane(segment)
  end

  # Each object that naming allocates costs a collection there.
  def test_naming_rests_under_gc_stress
    collections = run_program(<<~'RUBY').to_i
      200.times { |i| eval("def work#{i}; n = 0; n += 1 while n < 20_000; end") }
      eval("def work = (#{Array.new(200) { |i| "work#{i}" }.join("; ")})")
      work # a method's first call makes an object
      start interval_ns: 100_000
      GC.stress = true
      before = GC.count
      limit = cpu + 1
      work while cpu < limit
      count = GC.count - before
      GC.stress = false
      stop
      puts count
    RUBY
    assert_operator collections, :<, 200
    assert_operator methods_of(segment).keys.grep(/work\d+\z/).size, :>, 64
    refute(methods_of(segment).keys.any? { |name| name.include?("unresolved") })
  end
end
