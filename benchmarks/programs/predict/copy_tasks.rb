# frozen_string_literal: true

require_relative "../../support/removable"

# Records are saved one after the other, and each saving copies every attribute first.
class Task
  def initialize(id)
    @attributes = Array.new(20) { |n| ["attribute_#{n}", "value #{id} #{n} " * 4] }.to_h
  end

  def save
    attributes = @attributes
    attributes = attributes.to_h { |name, value| [name.dup, value.dup] } if Removable::KEPT # removable
    attributes.sum { |name, value| name.size * 3 + value.hash % 7 }
  end
end

TASKS = Array.new(2_000) { |id| Task.new(id) }
Removable.times(60_000) { |n| TASKS[n % TASKS.size].save }
