# frozen_string_literal: true

# Methods whose cost can be measured without a tracer. Each has a caller that only calls it. A tracer's self times can
# be compared with these costs. Without operators, because a tracer makes calls of them.
module Programs
  class KnownMethods
    # Steps in the body → a method; a step is some ns.
    STEPS = [0, 4, 16, 64, 128, 256, 1_024, 8_192].freeze
    # Bytes summed → a C function.
    TEXTS = [8, 256, 1_024, 16_384].freeze
    # Steps in a block that is yielded to.
    BLOCKS = [0, 64, 512].freeze
    # Calls in the text of a caller, so that its own loop is no part of the cost.
    UNROLLED = 100
    NAMES = [*STEPS.map { |steps| "ruby_#{steps}" }, *BLOCKS.map { |steps| "block_#{steps}" },
             *TEXTS.map { |bytes| "c_#{bytes}" }].freeze

    STEPS.each do |steps|
      body = "a = @x\n@y = a\n" * steps
      calls = "ruby_#{steps}\n" * UNROLLED
      class_eval "def ruby_#{steps}\n#{body}nil\nend\ndef call_ruby_#{steps}\n#{calls}nil\nend\n", "ruby_#{steps}.rb", 1
    end
    BLOCKS.each do |steps|
      body = "a = @x\n@y = a\n" * steps
      yielding = "def yield_#{steps}\n#{"yield\n" * UNROLLED}nil\nend\n"
      calling = "def call_block_#{steps}\nyield_#{steps} do\n#{body}nil\nend\nend\n"
      class_eval yielding + calling, "block_#{steps}.rb", 1
    end
    # A caller each: what a C function of one name takes is told by who called it.
    TEXTS.each do |bytes|
      calls = "text.sum\n" * UNROLLED
      class_eval "def call_c_#{bytes}\ntext = @texts[#{bytes}]\n#{calls}nil\nend\n", "c_#{bytes}.rb", 1
    end

    # A body so long that tracing its call costs little beside it, and short enough for the caches. Its time says how
    # fast the machine is at the moment.
    REFERENCE = "ruby_1024"

    def initialize
      @x = @y = 1
      @texts = TEXTS.to_h { |bytes| [bytes, "x" * bytes] }
    end

    # So many times UNROLLED calls.
    #: (String, Integer) -> void
    def call(name, turns)
      caller = :"call_#{name}"
      turns.times { public_send(caller) }
    end
  end
end
