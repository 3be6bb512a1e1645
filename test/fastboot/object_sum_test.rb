# frozen_string_literal: true

require_relative "../test_helper"
require "set"
require "pitwall/fastboot/setup"

# Native.object_sum tells of each change of an object, and of no other.
class ObjectSumTest < Minitest::Test
  NATIVE = Pitwall::Fastboot::Native if Pitwall::Fastboot.unavailable.nil?
  Point = Struct.new(:x, :y)
  Wide = Struct.new(*("a".."z").map(&:to_sym))

  CHANGES_OF_SET = [->(it) { it << 2 }, :clear.to_proc, ->(it) { it.delete(1).add(2) }].freeze
  IS_CORE_SET = RUBY_VERSION >= "4" # an older Set keeps its elements in a Hash, which is an object of its own
  CHANGES = {
    -> { +"text" } => [->(it) { it << "s" }, ->(it) { it.setbyte(0, 1) }, ->(it) { it.clear }, :freeze.to_proc,
                       ->(it) { it.instance_variable_set(:@x, 1) }, ->(it) { it.replace("x" * 100) }],
    -> { [1, :a, nil] } => [->(it) { it << 1 }, ->(it) { it[0] = 2 }, ->(it) { it[2] = false }, :reverse!.to_proc,
                            :clear.to_proc, :freeze.to_proc, ->(it) { it.instance_variable_set(:@x, 1) }],
    -> { [] } => [->(it) { it << nil }],
    -> { { a: 1, "b" => nil } } => [->(it) { it[:a] = 2 }, ->(it) { it[:c] = nil }, ->(it) { it.delete(:a) },
                                    :freeze.to_proc],
    -> { (1..100).to_h { |i| [i, i] } } => [->(it) { it[50] = 51 }, ->(it) { it[101] = 101 }],
    -> { Object.new } => [->(it) { it.instance_variable_set(:@x, nil) }, :freeze.to_proc],
    -> { Class.new { @x = 1 } } => [->(it) { it.instance_variable_set(:@x, 2) }, :freeze.to_proc,
                                    ->(it) { it.class_variable_set(:@@y, 1) }],
    -> { Point.new(1, 2) } => [->(it) { it.x = 2 }, ->(it) { it.y = nil }, :freeze.to_proc],
    -> { Wide.new } => [->(it) { it.z = 1 }],
    -> { Set[1] } => [->(it) { it.instance_variable_set(:@x, 1) }, *(CHANGES_OF_SET if IS_CORE_SET)]
  }.freeze
  CONSTANT = [1, nil, :symbol, 1.5, 1 << 80, 3r, 1i, /a/, "a".."b", -> { }, $stdout, Thread.current, Mutex.new,
              BasicObject.new, ObjectSpace::WeakMap.new, Enumerator.new { }, Fiber.new { }, Class.allocate,
              Struct.new(:a).allocate, Time.now, ENV, Object, Kernel, BasicObject, method(:puts), binding,
              Random.new].freeze

  def sum(object) = NATIVE.object_sum(object)

  def test_each_change_is_seen
    CHANGES.each do |make, changes|
      changes.each_with_index do |change, i|
        object = make.call
        before = sum(object)
        assert_equal before, sum(object), object.inspect
        change.call(object)
        refute_equal before, sum(object), "#{object.inspect}: change #{i}"
      end
    end
  end

  def test_looking_is_no_change
    CONSTANT.each do |object|
      before = sum(object)
      GC.start
      Kernel.instance_method(:inspect).bind_call(object) unless BasicObject === object && !(Kernel === object)
      assert_equal before, sum(object)
    end
  end

  # The order of a Hash's entries and of variables is no change that a later load would make.
  def test_order
    assert_equal sum({ a: 1, b: 2 }), sum({ b: 2, a: 1 })
    refute_equal sum({ a: 1, b: 2 }), sum({ a: 2, b: 1 })
    refute_equal sum([1, 2]), sum([2, 1])
  end

  def test_all_objects_under_stress
    list = [+"a", [1], { a: 1 }, Object.new, Point.new(1, 2)]
    sums = list.map { |object| sum(object) }
    GC.stress = true
    list.each_with_index { |object, i| assert_equal sums[i], sum(object) }
    GC.stress = false
    count = 0
    ObjectSpace.each_object { |object| count += 1 if sum(object) }
    assert_operator count, :>, 1000
  ensure
    GC.stress = false
  end
end
