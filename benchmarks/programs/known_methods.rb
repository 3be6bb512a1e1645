# frozen_string_literal: true

# Methods whose cost can be measured without a tracer, each by a caller that does nothing but call it: what a tracer says of
# their self time can be held against that. Without operators, which a tracer makes calls of.
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
    NAMES = [*STEPS.map { |steps| "ruby_#{steps}" }, *BLOCKS.map { |steps| "block_#{steps}" }, *TEXTS.map { |bytes| "c_#{bytes}" }].freeze

    STEPS.each do |steps|
      class_eval "def ruby_#{steps}\n#{"a = @x\n@y = a\n" * steps}nil\nend\ndef call_ruby_#{steps}\n#{"ruby_#{steps}\n" * UNROLLED}nil\nend\n", "ruby_#{steps}.rb", 1
    end
    BLOCKS.each do |steps|
      class_eval "def yield_#{steps}\n#{"yield\n" * UNROLLED}nil\nend\ndef call_block_#{steps}\nyield_#{steps} do\n#{"a = @x\n@y = a\n" * steps}nil\nend\nend\n", "block_#{steps}.rb", 1
    end
    # A caller each: what a C function of one name takes is told by who called it.
    TEXTS.each do |bytes|
      class_eval "def call_c_#{bytes}\ntext = @texts[#{bytes}]\n#{"text.sum\n" * UNROLLED}nil\nend\n", "c_#{bytes}.rb", 1
    end

    # So long that tracing its call costs little beside it, and short enough for the caches: tells how fast the machine is just then.
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
