# frozen_string_literal: true

require_relative "../../support/removable"

# Each request adds a closure, which is called when the queue has come round. Procs keep their bindings and live for a
# short time.
class Queue_
  def initialize(size)
    @waiting = Array.new(size) { [] }
  end

  def push(n)
    at = n % @waiting.size
    done = @waiting[at]
    @waiting[at] = []
    @waiting[at] << ->(code) { code + n } << ->(text) { "#{text} #{n}" } if Removable::KEPT # removable
    done.size + "request #{n}".size
  end
end

QUEUE = Queue_.new(5_000)
Removable.times(600_000) { |n| QUEUE.push(n) }
