# A module that is mixed in by many paths, and gets methods after that: the script of ruby/ruby#2752 (John
# Hawthorn, 2019), which found that each definition emptied caches once for each path. A module goes through LAYERS layers. Each layer
# includes the module itself and the layer before. CLASSES classes include the last layer. Then DEFINITIONS methods are
# defined on the module.
#
#   ruby examples/definitions/layers.rb                  # prints a row: what RubyVM.stat counted, and the time
#   pitwall compare --ruby ruby3.3 --ruby ruby3.4 examples/definitions/layers.rb
#   pitwall caches --no-lines --definitions -- ruby examples/definitions/layers.rb

require_relative "row"

LAYERS = Integer(ENV.fetch("LAYERS", 10))
CLASSES = Integer(ENV.fetch("CLASSES", 100))
DEFINITIONS = Integer(ENV.fetch("DEFINITIONS", 1000))

DEEP = Module.new
top = LAYERS.times.reduce(DEEP) do |below, _|
  Module.new do
    include DEEP
    include below
  end
end
INCLUDERS = Array.new(CLASSES) { Class.new { include top } }

Row.of("a module in #{CLASSES} classes through #{LAYERS} layers", "definition", DEFINITIONS) do
  DEFINITIONS.times { DEEP.define_method(:probe) {} }
end
