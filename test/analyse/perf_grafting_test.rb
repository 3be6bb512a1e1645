# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/recording_builder"
require_relative "../support/random_recording"
require "pitwall/analyse/perf/grafting"

# Where perf's frames begin below a stack of a recording.
class PerfGraftingTest < Minitest::Test
  Named = Struct.new(:name, :path)
  RUBY_FRAME = 0
  C = 1
  NATIVE = 3

  # "ruby:main", "c:IO#read", "native:read" from the root to the leaf → the names that stay, those of perf that follow.
  def graft(stack, tail)
    segment = recorded(stack)
    grafting = Pitwall::Analyse::Perf::Grafting.new(segment)
    node, frames = grafting.call(segment.parents.size - 1, tail.map { |name| Named.new(name, "/l.so") })
    [names(segment, node), frames.map(&:name)]
  end

  def names(segment, node)
    found = []
    while node.positive?
      found.unshift(segment.frame(node).name)
      node = segment.parents[node]
    end
    found
  end

  def recorded(stack)
    frames = stack.map do |text|
      kind, name = text.split(":", 2)
      kind = { "ruby" => RUBY_FRAME, "c" => C, "native" => NATIVE, "gc" => 2 }.fetch(kind)
      [name, kind == NATIVE ? "/l.so" : "", 0, nil, kind]
    end
    out = StringIO.new("".b)
    Pitwall::Record.write(out) do |writer|
      segment = writer.segment({ "pid" => 1 })
      node = segment.stack(frames.map { |name, path, line, _, kind| [name, path, line, 0, kind] })
      segment.row(thread: 1, node: node, wall: 1)
      segment.close
    end
    RandomRecording.read(out.string).segments.first
  end

  def test_a_stack_without_native_frames_stays
    assert_equal [%w[main IO#read], %w[call io_read read]], graft(%w[ruby:main c:IO#read], %w[call io_read read])
  end

  def test_native_frames_that_both_have_stay_with_the_c_methods_between_them
    stack = %w[native:vm_exec_core ruby:main native:call c:IO#read native:io_read native:read]
    assert_equal [%w[vm_exec_core main call IO#read io_read read], %w[do_syscall]],
                 graft(stack, %w[call io_read read do_syscall])
  end

  def test_native_frames_of_another_moment_are_replaced
    stack = %w[native:vm_exec_core ruby:main native:call c:IO#read native:io_read native:malloc native:brk]
    assert_equal [%w[vm_exec_core main call IO#read io_read], %w[read do_syscall]],
                 graft(stack, %w[call io_read read do_syscall])
  end

  def test_ruby_and_c_frames_always_stay
    stack = %w[native:vm_exec_core ruby:main native:call c:IO#read native:io_read]
    assert_equal [%w[vm_exec_core main call IO#read], %w[rb_str_hash]], graft(stack, %w[rb_str_hash])
    assert_equal [%w[vm_exec_core main call IO#read], %w[str_new]], graft(stack, %w[call str_new])
  end

  def test_frames_above_the_innermost_loop_stay
    stack = %w[native:vm_exec_core ruby:a native:call c:Array#each native:each native:vm_exec_core ruby:b native:x]
    assert_equal [%w[vm_exec_core a call Array#each each vm_exec_core b], %w[y]], graft(stack, %w[y])
    assert_equal [%w[vm_exec_core a call Array#each each vm_exec_core b], []], graft(stack, [])
  end
end
