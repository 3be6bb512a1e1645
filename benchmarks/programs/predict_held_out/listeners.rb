# frozen_string_literal: true

require_relative "../../support/removable"

# Each request hangs up a closure that is called when the queue has come round: procs with their bindings, which live a little.
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
