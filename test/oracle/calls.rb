# frozen_string_literal: true

# Counts calls with a TracePoint: slow, obvious, and by another way than the tracer's. A stack of names for each fiber; what is
# called is called by what is on top. Methods and blocks in Ruby go by where they are defined, C functions by class and name.
class CallOracle
  # [caller, callee] => calls; "root" calls what a fiber or thread begins with.
  attr_reader :edges

  def initialize
    @edges = Hash.new(0)
    @stacks = Hash.new { |stacks, fiber| stacks[fiber] = [] }.compare_by_identity
    @point = TracePoint.new(:call, :return, :c_call, :c_return, :b_call, :b_return, :class, :end) { |tp| see(tp) }
  end

  def start = @point.enable
  def stop = @point.disable

  private

  def see(tp)
    stack = @stacks[Fiber.current]
    case tp.event
    when :call, :class then enter(stack, "#{tp.path}:#{tp.lineno}", tp.event)
    when :c_call then enter(stack, c_name(tp), :c_call)
    when :b_call
      key = "#{tp.path}:#{tp.lineno}"
      if stack.last == [key, :call] # a block that is a method is told twice
        stack.last[1] = :method_block
      else
        enter(stack, key, :b_call)
      end
    when :return then leave(stack, %i[call method_block])
    when :end then leave(stack, %i[class])
    when :b_return then leave(stack, %i[b_call]) unless stack.last&.last == :method_block
    when :c_return then leave(stack, %i[c_call])
    end
  end

  def enter(stack, key, kind)
    @edges[[stack.empty? ? "root" : stack.last[0], key]] += 1
    stack << [key, kind]
  end

  def leave(stack, kinds)
    at = stack.rindex { |_, kind| kinds.include?(kind) } or return
    stack.slice!(at..)
  end

  def c_name(tp)
    owner = tp.defined_class
    return "#{owner}##{tp.method_id}" unless owner.singleton_class?

    attached = ObjectSpace.each_object(owner).find { |object| object.singleton_class == owner }
    attached.is_a?(Module) ? "#{attached}.#{tp.method_id}" : "#<#{attached.class}>.#{tp.method_id}"
  end
end
